"""`foliot runs`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from foliot.cli.checkpoints import checkpoint_table, checkpoints_of, waits_of
from foliot.cli.columns import Column
from foliot.cli.commands.jobs import describe
from foliot.cli.local_times import locate_range
from foliot.cli.name_completion import job_names, queue_names, run_ids
from foliot.cli.options import given
from foliot.cli.output import Output, output_options
from foliot.cli.short_ids import full_id, job_reference
from foliot.cli.tables import away, facts, table, word
from foliot.sdk.operations import Operations

MESSAGE_MAX = 200
HEADERS = (
    Column("RUN", "id"),
    "STATUS",
    Column("TASK", "text"),
    Column("NAME", "text", 1),
    Column("QUEUE", "text", 2),
    Column("ATTEMPT", leaves=3),
    "WHEN",
    Column("ERROR", "text"),
)
ATTEMPT_HEADERS = (
    "ATTEMPT",
    "OUTCOME",
    Column("WORKER", "id"),
    "STARTED",
    Column("TOOK", leaves=1),
    Column("OUTPUT", leaves=2),
    Column("ERROR", "wrapped"),
)

FILTERS = (
    click.option(
        "--status",
        "--state",
        "state",
        metavar="WORD",
        help="Only runs with this status, such as failed or pending; separate several with commas.",
    ),
    click.option("--queue", help="Only runs in this queue.", shell_complete=queue_names),
    click.option("--task", help="Only runs of this task."),
    click.option("--job", metavar="NAME_OR_ID", help="Only runs of this recurring job.", shell_complete=job_names),
    click.option("--tag", help="Only runs with this tag."),
    click.option("--parent", metavar="ID", help="Only steps of this workflow, or items of this map."),
    click.option(
        "--since",
        metavar="TIME",
        help="Only runs since an ISO time, or within a duration such as 2h.  [default: 7d for finished runs]",
    ),
    click.option("--until", metavar="TIME", help="Only runs before an ISO time, or a duration ago."),
    click.option("--text", help="Only runs with this text in the name, the task or the error."),
)


def filter_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(FILTERS):
        function = option(function)
    return function


@click.group(invoke_without_command=True)
@filter_options
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of runs.")
@output_options
@click.pass_context
def command(context: click.Context, /, limit: int, output: Output, **filters: str | None) -> None:
    """List runs, newest first; or show a run."""
    if output.pass_to_subcommand(context):
        return
    with Operations.from_environment() as client:
        wanted = locate_range(given(**filters))
        if parent := wanted.get("parent"):
            wanted["parent"] = full_id(client, parent)
        if job := wanted.get("job"):
            wanted["job"] = job_reference(client, job)
        output.show(lambda: client.list_runs(wanted, limit=limit), run_table, nothing="No matching runs.")


def run_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            run["id"], word(run["status"]), run["task"], run["name"] or "", run["queue"], str(run["attempt"] or ""),
            away(latest_of(run), now), problem_of(run["error"]),
        )
        for run in answer["items"]
    ]  # fmt: skip
    return table(HEADERS, rows)


def latest_of(run: dict[str, Any]) -> str:
    """The time of a run that says most. A run that waits for something else than a time has no meaningful due time."""
    due = run["created_at"] if run["state"] in ("held", "waiting") else run["scheduled_at"]
    return str(run["finished_at"] or run["started_at"] or due)


@command.command("show")
@click.argument("run_id", metavar="RUN_ID", shell_complete=run_ids)
@output_options
def show_command(run_id: str, output: Output) -> None:
    """Show a run with all its attempts, and the recorded steps of a durable function."""
    with Operations.from_environment() as client:
        run_id = full_id(client, run_id)

        def render(run: dict[str, Any], now: datetime) -> str:
            attempts = client.list_attempts(run_id).document["items"]
            checkpoints = checkpoint_table(checkpoints_of(client, run_id), now)
            waits = facts([("waits for", waits_of(run["awaits"], now))])
            parts = (describe(run, now), facts(links(run)), waits, checkpoints, attempt_table(attempts, now))
            return "\n\n".join(part for part in parts if part)

        output.show(lambda: client.get_run(run_id), render)


def links(run: dict[str, Any]) -> list[tuple[str, str | None]]:
    progress, cancel = run["progress"], run["cancel_requested"]
    return [
        ("rerun of", run["rerun_of"]),
        ("rerun as", run["rerun_as"]),
        ("part of", f"{run['parent_id']} as {run['step']}" if run["parent_id"] else None),
        ("after", ", ".join(run["upstream"])),
        ("job", run["job_id"]),
        ("trace", run["trace_url"] or run["trace_id"]),
        ("notifies of", run["notifies"]),
        ("notifications", ", ".join(run["notifications"])),
        *tick_facts(run["tick"]),
        ("progress", f"{round(100 * (progress['share'] or 0))} % {progress['message']}" if progress else None),
        ("cancel requested", cancel["message"] if cancel else None),
    ]


def tick_facts(tick: dict[str, Any] | None) -> list[tuple[str, str | None]]:
    if tick is None:
        return []
    how = {"backfill": " (backfill)", "trigger": " (triggered by hand)"}.get(tick["origin"], "")
    return [
        ("tick", f"{tick['at']}{how}"),
        ("previous tick", tick["previous"]),
        ("next tick", tick["next"]),
        ("time zone", tick["timezone"]),
    ]


def attempt_table(attempts: list[dict[str, Any]], now: datetime) -> str:
    rows = [
        (
            str(one["attempt"]), word(one["outcome"]), one["worker_id"], away(one["started_at"], now),
            "" if one["duration_seconds"] is None else f"{one['duration_seconds']:.3f} s",
            "" if one["output_bytes"] is None else f"{one['output_bytes']} bytes", problem_of(one["error"]),
        )
        for one in attempts
    ]  # fmt: skip
    return table(ATTEMPT_HEADERS, rows)


def problem_of(error: Any) -> str:
    """A one-line summary of an error."""
    if not isinstance(error, dict):
        return ""
    text = f"{error.get('kind', 'error')}: {error.get('message', '')}"
    return text if len(text) <= MESSAGE_MAX else f"{text[: MESSAGE_MAX - 1]}…"
