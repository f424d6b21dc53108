"""`foliot signal`."""

from __future__ import annotations

import click
import msgspec

from foliot.cli.options import json_option, json_value
from foliot.cli.tables import clean
from foliot.sdk.client import Client
from foliot.sdk.workflow_handle import run_of, step_of


@click.command()
@click.argument("run_id", metavar="ID")
@click.argument("step", required=False)
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
    run_id: str, step: str | None, payload: msgspec.Raw | None, reject: bool, message: str, as_json: bool
) -> None:
    """Send a signal or an approval to a run that waits for one.

    ID is the id of the run. If ID is the id of a workflow, STEP is the key of the waiting step.
    """
    with Client.from_environment() as client:
        if step is not None:
            run_id = run_of(step_of(client.get_workflow(run_id).document, step))
        answer = client.signal_run(run_id, payload, approved=not reject, message=message)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(f"{clean(step or run_id)} was {'rejected' if reject else 'signalled'}", err=True)
