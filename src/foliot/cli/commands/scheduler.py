"""`foliot scheduler`."""

from __future__ import annotations

import click

from foliot import config
from foliot.assembly import run_scheduler
from foliot.cli.process import run, supervised_option


@click.command()
@click.option("--data", help="Data directory of a running `foliot up`, whose PostgreSQL to use.")
@supervised_option
def command(data: str | None, supervised: bool) -> None:
    """Run a scheduler node. You can run any number of them, on any machine."""
    loaded = config.load({"data": data})
    run(lambda stop: run_scheduler(loaded, stop), is_supervised=supervised)
