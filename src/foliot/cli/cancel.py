"""`foliot cancel`."""

from __future__ import annotations

import click

from foliot.cli.completing import run_ids
from foliot.cli.options import json_option
from foliot.cli.tables import clean
from foliot.sdk.client import Client


@click.command()
@click.argument("run_id", metavar="ID", shell_complete=run_ids)
@click.option("--reason", help="Why, for whoever asks later.")
@click.option("--force", is_flag=True, help="End it at once, without waiting for its worker to stop it.")
@json_option
def command(run_id: str, reason: str | None, force: bool, as_json: bool) -> None:
    """Cancel a run or a one-off job: at once if it waits; a running one is asked to stop."""
    with Client.from_environment() as client:
        answer = client.cancel_run(run_id, reason=reason, force=force)
    if as_json:
        click.echo(answer.content)
        return
    status = answer.document["status"]
    sentence = "is asked to stop" if status == "running" else f"is {clean(status)}"
    click.echo(f"{clean(run_id)} {sentence}", err=True)
