"""`foliot migrate`."""

from __future__ import annotations

import asyncio

import click

from foliot import config
from foliot.assembly import run_migrate


@click.command()
@click.option(
    "--force",
    is_flag=True,
    help="Migrate even if running processes are too old for the new schema; they notice and stop.",
)
def command(force: bool) -> None:
    """Migrate the database schema to this version.

    It is safe to run this on every node and at any time: each migration is applied once. If a running process is too
    old to work with the new schema, the command fails and changes nothing.
    """
    version = asyncio.run(run_migrate(config.load(), is_forced=force))
    click.echo(f"The schema is at version {version}.")
