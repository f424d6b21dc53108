"""`foliot logs`: what a run has written, or writes."""

from __future__ import annotations

import click

from foliot.cli.name_completion import run_ids
from foliot.cli.tables import clean
from foliot.errors import FoliotError
from foliot.sdk.operations import Operations

KEPT = "\n\t\r"


@click.command()
@click.argument("run_id", metavar="RUN_ID", shell_complete=run_ids)
@click.option(
    "--follow", "-f", is_flag=True, help="Go on until it has ended; exit with 0 if it completed, else with 1."
)
@click.option("--attempt", type=click.IntRange(1), help="Of this attempt.  [default: the last]")
def command(run_id: str, follow: bool, attempt: int | None) -> None:
    """Show the output of a run, while it runs or afterwards."""
    with Operations.from_environment() as client:
        if not follow:
            click.echo(clean(client.read_logs(run_id, attempt=attempt).decode("utf-8", "replace"), keep=KEPT), nl=False)
            return
        status = _follow(client, run_id, attempt)
    click.echo(f"{clean(run_id)} is {clean(status)}", err=True)
    if status != "completed":
        raise click.exceptions.Exit(1)


def _follow(client: Operations, run_id: str, attempt: int | None) -> str:
    """The status at its end."""
    for event in client.follow_logs(run_id, attempt=attempt):
        if event.kind == "output":
            click.echo(clean(event.data["text"], keep=KEPT), nl=False)
        elif event.kind == "end":
            return str(event.data["status"])
    raise FoliotError(f"the output of {run_id} broke off")
