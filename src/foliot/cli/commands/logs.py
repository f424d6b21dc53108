"""`foliot logs`."""

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
    "--follow",
    "-f",
    is_flag=True,
    help="Follow the output until the run ends; exit with 0 if it completed, else with 1.",
)
@click.option("--attempt", type=click.IntRange(1), help="Show the output of this attempt.  [default: the last]")
def command(run_id: str, follow: bool, attempt: int | None) -> None:
    """Show the output of a run, during the run or afterwards."""
    with Operations.from_environment() as client:
        if not follow:
            click.echo(clean(client.read_logs(run_id, attempt=attempt).decode("utf-8", "replace"), keep=KEPT), nl=False)
            return
        status = _follow(client, run_id, attempt)
    click.echo(f"{clean(run_id)} is {clean(status)}", err=True)
    if status != "completed":
        raise click.exceptions.Exit(1)


def _follow(client: Operations, run_id: str, attempt: int | None) -> str:
    """Prints the output until the run ends, and returns its final status."""
    for event in client.follow_logs(run_id, attempt=attempt):
        if event.kind == "output":
            click.echo(clean(event.data["text"], keep=KEPT), nl=False)
        elif event.kind == "end":
            return str(event.data["status"])
    raise FoliotError(f"the server closed the output of {run_id} before the run ended")
