"""`foliot trigger`."""

from __future__ import annotations

import click

from foliot.cli.completing import job_names
from foliot.cli.options import json_option
from foliot.cli.tables import clean
from foliot.sdk.client import Client


@click.command()
@click.argument("reference", metavar="NAME_OR_ID", shell_complete=job_names)
@json_option
def command(reference: str, as_json: bool) -> None:
    """Run a recurring job once now, beside its schedule, and print the run's id."""
    with Client.from_environment() as client:
        answer = client.trigger_job(reference)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(answer.document["id"])
    click.echo(f"{clean(reference)} runs now; look at it with: foliot jobs show {answer.document['id']}", err=True)
