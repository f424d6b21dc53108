"""`foliot dead`: groups, lists, shows and replays runs that failed for good."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.columns import Column
from foliot.cli.commands.runs import problem_of
from foliot.cli.dead_replays import replays_command, stop_command
from foliot.cli.local_times import locate_range
from foliot.cli.name_completion import queue_names, run_ids
from foliot.cli.options import given, json_option, json_value
from foliot.cli.output import Output, output_options
from foliot.cli.progress import spinner
from foliot.cli.short_ids import full_id
from foliot.cli.tables import at, away, facts, table, word
from foliot.cli.tracebacks import failure_of
from foliot.sdk.operations import Operations

GROUP_HEADERS = (
    "GROUP",
    "COUNT",
    Column("TASK", "text"),
    Column("QUEUE", "text", 3),
    Column("FIRST", leaves=4),
    Column("LAST", leaves=1),
    Column("SAMPLE", "id", 2),
    Column("ERROR", "text"),
)
HEADERS = (
    Column("RUN", "id"),
    Column("TASK", "text"),
    Column("NAME", "text", 2),
    Column("QUEUE", "text", 3),
    Column("ATTEMPTS", leaves=4),
    "FAILED",
    Column("REPLAYED AS", "id", 1),
    Column("ERROR", "text"),
)

FILTERS = (
    click.option("--task", help="Only runs of this task."),
    click.option("--queue", help="Only runs in this queue.", shell_complete=queue_names),
    click.option(
        "--since",
        metavar="TIME",
        help="Only runs that failed since an ISO time, or within a duration such as 2h.  [default: 7d]",
    ),
    click.option("--until", metavar="TIME", help="Only runs that failed before an ISO time, or a duration ago."),
)


def filter_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(FILTERS):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@filter_options
@click.option("--replayed", is_flag=True, help="Include runs that have been replayed.")
@output_options
@click.pass_context
def command(context: click.Context, /, replayed: bool, output: Output, **filters: str | None) -> None:
    """Show the dead letters (runs that failed for good), grouped by error; or list or replay them."""
    if output.pass_to_subcommand(context):
        return
    request = locate_range(given(**filters, replayed="1" if replayed else None))
    with Operations.from_environment() as client:
        output.show(lambda: client.group_dead_letters(request), group_table, nothing="No dead letters.")


def group_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            group["fingerprint"], str(group["count"]), group["task"], group["queue"], away(group["first_at"], now),
            away(group["last_at"], now), group["sample_id"], problem_of(group),
        )
        for group in answer["items"]
    ]  # fmt: skip
    more = "\nMore groups exist; narrow the search with --since, --task or --queue." if answer["more"] else ""
    return table(GROUP_HEADERS, rows) + more


@command.command("list")
@filter_options
@click.option("--group", help="Only runs of this group.")
@click.option("--replayed", is_flag=True, help="Include runs that have been replayed.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of runs.")
@output_options
def list_command(replayed: bool, limit: int, output: Output, **filters: str | None) -> None:
    """List dead letters one by one, newest first."""
    request = locate_range(given(**filters, replayed="1" if replayed else None))
    with Operations.from_environment() as client:
        output.show(lambda: client.list_dead_letters(request, limit=limit), dead_table, nothing="No dead letters.")


def dead_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            dead["id"],
            dead["task"],
            dead["name"] or "",
            dead["queue"],
            str(dead["attempt"]),
            away(dead["finished_at"], now),
            dead["rerun_as"] or "",
            problem_of(dead["error"]),
        )
        for dead in answer["items"]
    ]
    return table(HEADERS, rows)


@command.command("show")
@click.argument("run_id", metavar="RUN_ID", shell_complete=run_ids)
@output_options
def show_command(run_id: str, output: Output) -> None:
    """Show a dead letter with its whole error: the traceback, with its causes."""
    with Operations.from_environment() as client:
        run_id = full_id(client, run_id)
        output.show(lambda: client.get_run(run_id), dead_letter)


def dead_letter(run: dict[str, Any], now: datetime) -> str:
    shown = facts([
        ("run", run["id"]),
        ("name", run["name"]),
        ("status", word(run["status"])),
        ("task", run["task"]),
        ("queue", run["queue"]),
        ("attempts", str(run["attempt"])),
        ("failed", at(run["finished_at"], now)),
        ("replayed as", run["rerun_as"]),
    ])  # fmt: skip
    return "\n\n".join(part for part in (shown, failure_of(run["error"])) if part)


@command.command("replay")
@click.argument("run_ids", metavar="[RUN_ID]...", nargs=-1, shell_complete=run_ids)
@filter_options
@click.option("--group", help="Only runs of this group.")
@click.option(
    "--rate",
    "rate_per_second",
    type=click.FloatRange(0, 10_000, min_open=True),
    help="Runs to replay per second, instead of all at once.",
)
@click.option(
    "--payload",
    type=json_value,
    metavar="JSON",
    help="New payload: JSON, @FILE, or - for standard input.",
)
@click.option(
    "--canary",
    is_flag=True,
    help="Replay the latest one alone. The others follow once it has succeeded; otherwise they stay dead letters.",
)
@click.option("--again", is_flag=True, help="Include runs that have been replayed.")
@click.option("--keep-checkpoints", is_flag=True, help="Continue after the recorded steps of durable functions.")
@click.option("--all", "is_all", is_flag=True, help="Replay all dead letters of the last 7 days.")
@click.option("--dry-run", is_flag=True, help="Show how many runs would be replayed, without replaying them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def replay_command(
    run_ids: tuple[str, ...],
    rate_per_second: float | None,
    payload: msgspec.Raw | None,
    canary: bool,
    again: bool,
    keep_checkpoints: bool,
    is_all: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **filters: str | None,
) -> None:
    """Replay the given dead letters, or all that match the options.

    Runs that have been replayed are left out, unless you give --again.
    """
    selected = locate_range(given(**filters))
    if bool(run_ids) + bool(selected) + is_all != 1:
        raise click.UsageError("give RUN_IDs, or filters (--group, --task, --queue, --since, --until), or --all")
    request: dict[str, Any] = {"ids": run_ids} if run_ids else {"filter": selected}
    extra = {"rate_per_second": rate_per_second, "payload": payload, "canary": canary or None}
    extra |= {"again": again or None, "keep_checkpoints": keep_checkpoints or None}
    request |= {name: value for name, value in extra.items() if value is not None}
    with Operations.from_environment() as client:
        if run_ids:
            request["ids"] = [full_id(client, run_id) for run_id in run_ids]
        if dry_run or (not run_ids and not yes and sys.stdin.isatty()):
            planned = client.replay_dead_letters({**request, "dry_run": True})
            if dry_run:
                click.echo(planned.content if as_json else f"{_counted(planned.document)} would be replayed")
                return
            if not click.confirm(f"Replay {_counted(planned.document)}?", err=True):
                click.echo("No runs were replayed.", err=True)
                raise click.exceptions.Exit(1)
        with spinner("replaying", is_quiet=as_json):
            result = client.replay_dead_letters(request)
    if as_json:
        click.echo(result.content)
        return
    for item in result.document["items"]:
        click.echo(item["run_id"])
    if replay_id := result.document["replay_id"]:
        click.echo(f"the others follow once it has succeeded: foliot dead replays {replay_id}", err=True)
        return
    skipped = f"; {len(result.document['skipped'])} skipped" if result.document["skipped"] else ""
    click.echo(f"{_counted(result.document)} replayed{skipped}", err=True)


command.add_command(replays_command)
command.add_command(stop_command)


def _counted(answer: dict[str, Any]) -> str:
    number = answer["count"]
    more = " or more" if answer["more"] else ""
    return "1 dead letter" if number == 1 else f"{number}{more} dead letters"
