"""`foliot resume`."""

from __future__ import annotations

import click

from foliot.cli.options import json_option
from foliot.cli.tables import at, clean
from foliot.clock import SystemClock
from foliot.sdk.client import Client


@click.command()
@click.argument("reference", metavar="NAME_OR_ID")
@json_option
def command(reference: str, as_json: bool) -> None:
    """Resume a paused job with its next tick from now."""
    with Client.from_environment() as client:
        answer = client.resume_job(reference)
    if as_json:
        click.echo(answer.content)
        return
    job = answer.document
    next_tick = f"its next tick is at {at(job['next_at'], SystemClock().now())}" if job["next_at"] else "it has no ticks left"
    click.echo(f"{clean(job['name'])} is {job['status']}; {next_tick}", err=True)
