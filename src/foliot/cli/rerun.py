"""`foliot rerun`."""

from __future__ import annotations

import click
import msgspec

from foliot.cli.completing import run_ids
from foliot.cli.options import json_option, json_value
from foliot.cli.tables import clean
from foliot.sdk.operations import Operations


@click.command()
@click.argument("run_id", metavar="RUN_ID", shell_complete=run_ids)
@click.option("--payload", type=json_value, metavar="JSON", help="In place of the one it had: JSON, @FILE, or - for standard input.")
@json_option
def command(run_id: str, payload: msgspec.Raw | None, as_json: bool) -> None:
    """Run once more what has ended, well or not, and print the new run's id."""
    with Operations.from_environment() as client:
        answer = client.rerun(run_id, payload=payload)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(answer.document["id"])
    click.echo(f"{clean(run_id)} is run again; look at it with: foliot runs show {answer.document['id']}", err=True)
