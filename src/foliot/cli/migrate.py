"""`foliot migrate`."""

from __future__ import annotations

import asyncio

import click

from foliot import config
from foliot.assembly import run_migrate


@click.command()
def command() -> None:
    """Bring the database's schema up to date.

    Safe to run on every node and at any time: what has been applied is not applied again.
    """
    version = asyncio.run(run_migrate(config.load()))
    click.echo(f"The schema is at version {version}.")
