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
    help="What the run gets to know: JSON, @FILE, or - for standard input.",
)
@click.option("--reject", is_flag=True, help="Say no: the run fails.")
@click.option("--message", default="", help="Why, for whoever asks later.")
@json_option
def command(
    run_id: str, step: str | None, payload: msgspec.Raw | None, reject: bool, message: str, as_json: bool
) -> None:
    """Let a run start that waits for a signal or an approval.

    ID is that of the run; or of a workflow, and STEP is the key of the step in it.
    """
    with Client.from_environment() as client:
        if step is not None:
            run_id = run_of(step_of(client.get_workflow(run_id).document, step))
        answer = client.signal_run(run_id, payload, approved=not reject, message=message)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(f"{clean(step or run_id)} is {'rejected' if reject else 'signalled'}", err=True)
