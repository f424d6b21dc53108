"""`python -m foliot`."""

from foliot.cli.main import main

main()
