"""`foliot logs`."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from foliot.cli.name_completion import run_ids
from foliot.cli.options import json_option
from foliot.cli.short_ids import full_id
from foliot.cli.tables import clean
from foliot.cli.tracebacks import traceback_of
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
@json_option
def command(run_id: str, follow: bool, attempt: int | None, as_json: bool) -> None:
    """Show the output of a run, during the run or afterwards. The traceback of a failed task follows it."""
    if follow and as_json:
        raise click.UsageError("--json: can't be used with --follow")
    with Operations.from_environment() as client:
        run_id = full_id(client, run_id)
        if not follow:
            output = client.read_logs(run_id, attempt=attempt).decode("utf-8", "replace")
            error = _error(client, run_id, attempt)
            if as_json:
                click.echo(msgspec.json.encode({"output": output, "error": error}))
                return
            _show(output)
            _show_failure(error, output)
            return
        status, last = _follow(client, run_id, attempt)
        if status == "failed":
            _show_failure(_error(client, run_id, attempt), last)
    click.echo(f"{clean(run_id)} is {clean(status)}", err=True)
    if status != "completed":
        raise click.exceptions.Exit(1)


def _error(client: Operations, run_id: str, attempt: int | None) -> Any:
    """The error of the given attempt, or of the last one."""
    if attempt is None:
        return client.get_run(run_id).document["error"]
    attempts = client.list_attempts(run_id).document["items"]
    return next((one["error"] for one in attempts if one["attempt"] == attempt), None)


def _show(output: str) -> None:
    click.echo(clean(output, keep=KEPT), nl=False)


def _show_failure(error: Any, output: str) -> None:
    if failure := traceback_of(error):
        click.echo(failure if not output or output.endswith("\n") else f"\n{failure}")


def _follow(client: Operations, run_id: str, attempt: int | None) -> tuple[str, str]:
    """Prints the output until the run ends, and returns its final status and the last part of the output."""
    last = ""
    for event in client.follow_logs(run_id, attempt=attempt):
        if event.kind == "output":
            last = event.data["text"]
            _show(last)
        elif event.kind == "end":
            return str(event.data["status"]), last
    raise FoliotError(f"the server closed the output of {run_id} before the run ended")
