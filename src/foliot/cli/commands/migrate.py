"""`foliot migrate`."""

from __future__ import annotations

import asyncio

import click

from foliot import config
from foliot.assembly import run_migrate


@click.command()
@click.option(
    "--force", is_flag=True, help="Also when running processes could not go on with it: they notice it, and stop."
)
def command(force: bool) -> None:
    """Bring the database's schema up to date.

    Safe to run on every node and at any time: what has been applied is not applied again. Refused, with nothing
    changed, when a running process is too old to work with the new schema.
    """
    version = asyncio.run(run_migrate(config.load(), is_forced=force))
    click.echo(f"The schema is at version {version}.")
