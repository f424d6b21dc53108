"""Other schedulers and queues, given the same work on the same machine: `make bench ARGS="--rivals"`.

Each is installed on demand into an environment of its own below `.rivals/`, which git ignores. `sides/` holds their
programs, which know nothing of Foliot; `compare.py` and `waits.py` are scenarios like the others.
"""
