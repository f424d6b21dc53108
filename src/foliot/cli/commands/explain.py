"""`foliot explain`."""

from __future__ import annotations

import click

from foliot.cli.columns import Column
from foliot.cli.name_completion import job_names
from foliot.cli.options import json_option
from foliot.cli.short_ids import any_reference
from foliot.cli.tables import Cell, clean, table, word
from foliot.sdk.operations import Operations


@click.command()
@click.argument("reference", shell_complete=job_names)
@json_option
def command(reference: str, as_json: bool) -> None:
    """Explain why a run, a workflow, a recurring job or a queue is not running.

    REFERENCE is an id or a name. The gates are listed in the order in which a run passes them; the first closed gate is
    the cause. The name `archive` explains why old days of history are still in the database.
    """
    with Operations.from_environment() as client:
        answer = client.explain(any_reference(client, reference))
    if as_json:
        click.echo(answer.content)
        return
    found = answer.document
    name = f" {clean(found['name'])!r}" if found["name"] else ""
    click.echo(f"{found['kind']}{name} is {word(found['state']).padded(0)}: {clean(found['summary'])}")
    if found["gates"]:
        click.echo()
        rows = [
            (Cell("open", "green") if gate["is_open"] else Cell("closed", "yellow"), gate["gate"], gate["detail"])
            for gate in found["gates"]
        ]
        click.echo(table(("", "GATE", Column("WHY", "wrapped")), rows))
