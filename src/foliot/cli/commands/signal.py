"""`foliot signal`."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from foliot.cli.options import json_option, json_value
from foliot.cli.short_ids import full_id
from foliot.cli.tables import clean
from foliot.errors import NotFound
from foliot.sdk.client import Client
from foliot.sdk.workflow_handle import run_of, step_of


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("name", required=False)
@click.option(
    "--payload",
    type=json_value,
    metavar="JSON",
    help="Payload of the signal: JSON, @FILE, or - for standard input.",
)
@click.option("--reject", is_flag=True, help="Reject the approval; the run fails.")
@click.option("--message", default="", help="Reason to record.")
@json_option
def command(
    run_id: str, name: str | None, payload: msgspec.Raw | None, reject: bool, message: str, as_json: bool
) -> None:
    """Send a signal or an approval to a run that waits for one.

    ID is the id of the run. NAME is the signal that a durable function waits for. If ID is the id of a workflow, NAME
    is the key of the waiting step.
    """
    with Client.from_environment() as client:
        run_id = full_id(client, run_id)
        signal = name
        if name is not None and (workflow := workflow_of(client, run_id)) is not None:
            run_id, signal = run_of(step_of(workflow, name)), None
        answer = client.signal_run(run_id, payload, approved=not reject, message=message, name=signal)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(f"{clean(name or run_id)} was {'rejected' if reject else 'signalled'}", err=True)
    if signal is not None and (awaited := (answer.document["awaits"] or {}).get("signals")):
        click.echo(f"The signal is kept: the run waits for {clean(', '.join(awaited))} now.", err=True)


def workflow_of(client: Client, run_id: str) -> dict[str, Any] | None:
    """None: the id is that of a run."""
    try:
        found: dict[str, Any] = client.get_workflow(run_id).document
    except NotFound:
        return None
    return found
