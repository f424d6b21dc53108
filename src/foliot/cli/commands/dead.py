"""`foliot dead`: runs that failed for good, by what they have in common or one by one, and replayed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.commands.runs import problem_of
from foliot.cli.name_completion import queue_names, run_ids
from foliot.cli.options import given, json_option, json_value
from foliot.cli.output import Output, output_options
from foliot.cli.progress import working
from foliot.cli.tables import away, table
from foliot.sdk.operations import Operations

FILTERS = (
    click.option("--task", help="Of this task."),
    click.option("--queue", help="Of this queue.", shell_complete=queue_names),
    click.option("--since", metavar="TIME", help="Failed since: an ISO time, or a duration such as 2h.  [default: 7d]"),
    click.option("--until", metavar="TIME", help="Failed before: an ISO time, or a duration."),
)


def filter_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(FILTERS):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@filter_options
@click.option("--replayed", is_flag=True, help="Also those that have been replayed.")
@output_options
@click.pass_context
def command(context: click.Context, /, replayed: bool, output: Output, **filters: str | None) -> None:
    """Show the failed runs, grouped by their errors; or list or replay them."""
    if output.hand_on(context):
        return
    asked = given(**filters, replayed="1" if replayed else None)
    with Operations.from_environment() as client:
        output.show(lambda: client.group_dead_letters(asked), group_table, nothing="There are no dead letters.")


def group_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            group["fingerprint"], str(group["count"]), group["task"], group["queue"], away(group["first_at"], now),
            away(group["last_at"], now), group["sample_id"], problem_of(group),
        )
        for group in answer["items"]
    ]  # fmt: skip
    more = "\nThere are more; narrow it with --since, --task or --queue." if answer["more"] else ""
    return table(("GROUP", "COUNT", "TASK", "QUEUE", "FIRST", "LAST", "SAMPLE", "ERROR"), rows) + more


@command.command("list")
@filter_options
@click.option("--group", help="Of this group.")
@click.option("--replayed", is_flag=True, help="Also those that have been replayed.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many of the latest.")
@output_options
def list_command(replayed: bool, limit: int, output: Output, **filters: str | None) -> None:
    """List failed runs one by one, the latest first."""
    asked = given(**filters, replayed="1" if replayed else None)
    with Operations.from_environment() as client:
        output.show(
            lambda: client.list_dead_letters(asked, limit=limit), dead_table, nothing="There are no dead letters."
        )


def dead_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (dead["id"], dead["task"], dead["name"] or "", dead["queue"], str(dead["attempt"]), away(dead["finished_at"], now),
         dead["rerun_as"] or "", problem_of(dead["error"]))
        for dead in answer["items"]
    ]  # fmt: skip
    return table(("RUN", "TASK", "NAME", "QUEUE", "ATTEMPTS", "FAILED", "REPLAYED AS", "ERROR"), rows)


@command.command("replay")
@click.argument("run_ids", metavar="[RUN_ID]...", nargs=-1, shell_complete=run_ids)
@filter_options
@click.option("--group", help="All of this group.")
@click.option(
    "--rate",
    "rate_per_second",
    type=click.FloatRange(0, 10_000, min_open=True),
    help="So many a second, instead of all at once.",
)
@click.option(
    "--payload",
    type=json_value,
    metavar="JSON",
    help="In place of those they had: JSON, @FILE, or - for standard input.",
)
@click.option("--again", is_flag=True, help="Also those that have been replayed.")
@click.option("--all", "is_all", is_flag=True, help="All dead letters of the last 7 days.")
@click.option("--dry-run", is_flag=True, help="Only say how many.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def replay_command(
    run_ids: tuple[str, ...],
    rate_per_second: float | None,
    payload: msgspec.Raw | None,
    again: bool,
    is_all: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **filters: str | None,
) -> None:
    """Run dead letters again: the given ones, or those that the options pick. What has been replayed is left out."""
    picked = given(**filters)
    if bool(run_ids) + bool(picked) + is_all != 1:
        raise click.UsageError(
            "say which: give either RUN_IDs, or --group, --task, --queue, --since or --until, or --all"
        )
    asked: dict[str, Any] = {"ids": run_ids} if run_ids else {"filter": picked}
    extra = {"rate_per_second": rate_per_second, "payload": payload, "again": again or None}
    asked |= {name: value for name, value in extra.items() if value is not None}
    with Operations.from_environment() as client:
        if dry_run or (not run_ids and not yes and sys.stdin.isatty()):
            planned = client.replay_dead_letters({**asked, "dry_run": True})
            if dry_run:
                click.echo(planned.content if as_json else f"{_counted(planned.document)} would be replayed")
                return
            if not click.confirm(f"Replay {_counted(planned.document)} now?", err=True):
                click.echo("Nothing was replayed.", err=True)
                raise click.exceptions.Exit(1)
        with working("replaying", is_quiet=as_json):
            done = client.replay_dead_letters(asked)
    if as_json:
        click.echo(done.content)
        return
    for item in done.document["items"]:
        click.echo(item["run_id"])
    skipped = f"; {len(done.document['skipped'])} skipped" if done.document["skipped"] else ""
    click.echo(f"{_counted(done.document)} replayed{skipped}", err=True)


def _counted(answer: dict[str, Any]) -> str:
    number = answer["count"]
    more = " or more" if answer["more"] else ""
    return "1 dead letter" if number == 1 else f"{number}{more} dead letters"
