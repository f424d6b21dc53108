"""`foliot workflows`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.columns import Column
from foliot.cli.commands.jobs import HELD_WORDS
from foliot.cli.commands.runs import problem_of
from foliot.cli.job_files import InvalidFiles
from foliot.cli.name_completion import workflow_ids
from foliot.cli.options import given, json_option
from foliot.cli.output import Output, output_options
from foliot.cli.short_ids import WORKFLOWS, full_id
from foliot.cli.tables import at, away, clean, facts, table, word
from foliot.cli.waiting import signal_command, wait_for_workflow
from foliot.cli.workflow_files import read_workflow
from foliot.clock import SystemClock
from foliot.sdk.client import Client
from foliot.sdk.operations import Operations

DEEPEST_SHOWN = 8
AFTER_SHOWN = 3
HEADERS = (
    Column("WORKFLOW", "id"),
    "STATUS",
    Column("NAME", "text"),
    Column("STEPS", "text"),
    "STARTED",
    Column("TOOK", leaves=1),
    Column("ERROR", "text"),
)
PLAN_HEADERS = (
    Column("STEP", "text"),
    Column("TASK", "text"),
    Column("AFTER", "text"),
    Column("RULE", "text", 1),
    Column("WHEN", "text"),
    Column("QUEUE", "text", 2),
)
STEP_HEADERS = (
    Column("STEP", "text"),
    "STATUS",
    Column("TASK", "text", 1),
    Column("AFTER", "text", 2),
    Column("RULE", "text", 4),
    Column("WHEN", "text", 2),
    Column("ATTEMPT", leaves=5),
    Column("TOOK", leaves=3),
    Column("RUN", "id"),
    Column("CAUSE", "wrapped"),
)
RECURRING = {"cron", "every", "times"}

wait_option = click.option(
    "--wait", "is_waiting", is_flag=True, help="Wait for the workflow to end; exit with 0 if it completed, else with 1."
)


@click.group(invoke_without_command=True)
@click.option(
    "--state",
    metavar="WORD",
    help="Only workflows with this status: running, completed, failed or cancelled; separate several with commas.",
)
@click.option("--name", help="Only workflows with this name.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of workflows."
)
@output_options
@click.pass_context
def command(context: click.Context, /, limit: int, output: Output, **filters: str | None) -> None:
    """List started workflows, newest first; or show, submit, cancel or redrive a workflow."""
    if output.pass_to_subcommand(context):
        return
    with Operations.from_environment() as client:
        output.show(
            lambda: client.list_workflows(given(**filters), limit=limit),
            workflow_table,
            nothing="No matching workflows.",
        )


def workflow_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            one["id"],
            word(one["status"]),
            one["name"] or "",
            progress_of(one["progress"]),
            away(one["created_at"], now),
            took(one["created_at"], one["finished_at"], now),
            problem_of(one["error"]),
        )
        for one in answer["items"]
    ]
    return table(HEADERS, rows)


@command.command("show")
@click.argument("workflow_id", metavar="ID", shell_complete=workflow_ids)
@wait_option
@output_options
def show_command(workflow_id: str, is_waiting: bool, output: Output) -> None:
    """Show a workflow and the status of its steps."""
    if is_waiting and output.interval is not None:
        raise click.UsageError("--wait can't be combined with --watch")
    with Client.from_environment() as client:
        workflow_id = full_id(client, workflow_id, WORKFLOWS)
        if is_waiting:
            _wait(client, workflow_id, as_json=output.as_json)
            return
        output.show(lambda: client.get_workflow(workflow_id), describe)


@command.command("submit")
@click.argument("file", metavar="FILE")
@click.option(
    "--dry-run", is_flag=True, help="Check the workflow on the server and show its steps, without storing it."
)
@wait_option
@json_option
def submit_command(file: str, dry_run: bool, is_waiting: bool, as_json: bool) -> None:
    """Submit a workflow from a YAML or JSON file, or - for standard input, and print its id.

    The file contains the body of POST /v1/workflows: a name and a list of steps, each with a key, a task or a command,
    and the keys of the steps it comes after.
    """
    request = checked_file(file)
    if is_waiting and RECURRING & request.keys():
        raise click.UsageError("--wait: can't be used with a recurring workflow, which does not end")
    if dry_run:
        _dry_run(request, as_json=as_json)
        return
    with Client.from_environment() as client:
        answer = client.create_workflow(request)
        if is_waiting and "schedule" not in answer.document:
            _wait(client, answer.document["id"], as_json=as_json)
            return
    if as_json:
        click.echo(answer.content)
        return
    click.echo(answer.document["id"])
    click.echo(_sentence(answer.document), err=True)


def checked_file(file: str) -> dict[str, Any]:
    try:
        return read_workflow(file)
    except InvalidFiles as error:
        for found in error.errors:
            click.echo(f"foliot: {found}", err=True)
        raise click.exceptions.Exit(2) from None


def _dry_run(request: Mapping[str, Any], *, as_json: bool) -> None:
    with Client.from_environment() as client:
        answer = client.check_workflow(request)
    if as_json:
        click.echo(answer.content)
        return
    steps = {step["key"]: step for step in answer.document["payload"]["steps"]}
    rows = []
    for key, level in levels_of({key: step.get("after", []) for key, step in steps.items()}).items():
        step = steps[key]
        what = step.get("task") or step.get("command") or ("wait" if "signal" in step else "")
        rows.append(
            (
                indented(key, level),
                what,
                after_of(step.get("after", [])),
                step.get("rule", ""),
                step.get("when", ""),
                step["queue"],
            )
        )
    click.echo(table(PLAN_HEADERS, rows))
    click.echo("dry run: nothing was stored", err=True)


@command.command("cancel")
@click.argument("workflow_id", metavar="ID", shell_complete=workflow_ids)
@click.option("--reason", help="Reason to record.")
@click.option("--force", is_flag=True, help="End it at once, including running steps and teardown.")
@json_option
def cancel_command(workflow_id: str, reason: str | None, force: bool, as_json: bool) -> None:
    """Cancel a workflow. Steps that always run, such as teardown, still run."""
    with Client.from_environment() as client:
        workflow_id = full_id(client, workflow_id, WORKFLOWS)
        answer = client.cancel_workflow(workflow_id, reason=reason, force=force)
    if as_json:
        click.echo(answer.content)
        return
    status = answer.document["status"]
    sentence = "is stopping; steps that always run still run" if status == "running" else f"is {clean(status)}"
    click.echo(f"{clean(workflow_id)} {sentence}", err=True)


@command.command("redrive")
@click.argument("workflow_id", metavar="ID", shell_complete=workflow_ids)
@wait_option
@json_option
def redrive_command(workflow_id: str, is_waiting: bool, as_json: bool) -> None:
    """Run the failed and cancelled steps again, and the steps that depend on them."""
    with Client.from_environment() as client:
        workflow_id = full_id(client, workflow_id, WORKFLOWS)
        answer = client.redrive_workflow(workflow_id)
        if is_waiting:
            _wait(client, workflow_id, as_json=as_json)
            return
    if as_json:
        click.echo(answer.content)
        return
    number = answer.document["progress"]["unfinished"]
    click.echo(f"{clean(workflow_id)} was redriven: {number} step{'' if number == 1 else 's'}", err=True)


def describe(workflow: dict[str, Any], now: datetime) -> str:
    shown = facts([
        ("id", workflow["id"]),
        ("name", workflow["name"]),
        ("status", word(workflow["status"])),
        ("reason", workflow["reason"]),
        ("steps", progress_of(workflow["progress"])),
        ("on failure", workflow["on_failure"]),
        ("params", ", ".join(f"{name}={as_json_text(value)}" for name, value in workflow["params"].items())),
        ("job", workflow["job_id"]),
        ("tick", workflow["tick_at"]),
        ("created", at(workflow["created_at"], now)),
        ("finished", at(workflow["finished_at"], now)),
        ("error", problem_of(workflow["error"])),
    ])  # fmt: skip
    signals = [signal_command(workflow["id"], step["key"]) for step in workflow["steps"] if step["held_by"] == "signal"]
    parts = [shown, step_table(workflow["steps"], now)]
    if signals:
        parts.append(
            "To send a signal, or to reject with --reject:\n" + "\n".join(f"  {clean(line)}" for line in signals)
        )
    return "\n\n".join(parts)


def as_json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def step_table(steps: Sequence[dict[str, Any]], now: datetime) -> str:
    """Lists the steps in a possible order of execution, indented by their depth in the graph."""
    levels = levels_of({step["key"]: step["after"] for step in steps})
    by_key = {step["key"]: step for step in steps}
    rows = []
    for key, level in levels.items():
        step = by_key[key]
        rows.append((
            indented(key, level), word(step["status"]), step["task"], after_of(step["after"]),
            "" if step["rule"] == "all_success" else step["rule"], step["when"] or "", str(step["attempt"] or ""),
            took(step["started_at"], step["finished_at"], now), step["id"] or "",
            cause_of(step, now),
        ))  # fmt: skip
    return table(STEP_HEADERS, rows)


def indented(key: str, level: int) -> str:
    return "  " * min(level, DEEPEST_SHOWN) + clean(key)


def levels_of(after: dict[str, list[str]]) -> dict[str, int]:
    """The depth of each step: the length of the longest path to it. Sorted by depth."""
    levels = dict.fromkeys(after, 0)
    waiting = {key: len(needed) for key, needed in after.items()}
    following: dict[str, list[str]] = {key: [] for key in after}
    for key, needed in after.items():
        for upstream in needed:
            following[upstream].append(key)
    free = deque(key for key, number in waiting.items() if number == 0)
    while free:
        key = free.popleft()
        for dependent in following[key]:
            levels[dependent] = max(levels[dependent], levels[key] + 1)
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                free.append(dependent)
    return dict(sorted(levels.items(), key=lambda item: item[1]))


def after_of(after: Sequence[str]) -> str:
    more = f", and {len(after) - AFTER_SHOWN} more" if len(after) > AFTER_SHOWN else ""
    return ", ".join(after[:AFTER_SHOWN]) + more


def cause_of(step: dict[str, Any], now: datetime) -> str:
    """The cause of a step's status: its error, the thing it waits for, or the progress of its items."""
    if step["error"]:
        # The message of a skipped step includes the reason, so the kind would only repeat it.
        return problem_of(step["error"]) if step["status"] != "skipped" else clean(step["error"].get("message", ""))
    if children := step["children"]:
        ended = sum(children[name] for name in ("succeeded", "failed", "cancelled", "skipped"))
        return f"{ended} of {children['total']}"
    if step["held_by"] == "signal":
        return "waits for a signal"
    if step["state"] == "held":
        return HELD_WORDS.get(step["held_by"] or "", "")
    return f"starts {away(step['scheduled_at'], now)}" if step["scheduled_at"] else step["reason"] or ""


def progress_of(progress: dict[str, Any]) -> str:
    done = progress["total"] - progress["unfinished"]
    notable = [f"{progress[name]} {name}" for name in ("failed", "cancelled", "skipped") if progress[name]]
    return f"{done} of {progress['total']}" + (f" ({', '.join(notable)})" if notable else "")


def took(started: str | None, finished: str | None, now: datetime) -> str:
    if not started:
        return ""
    seconds = (
        (datetime.fromisoformat(finished) if finished else now) - datetime.fromisoformat(started)
    ).total_seconds()
    return (
        f"{max(seconds, 0):.3f} s"
        if seconds < 60
        else f"{seconds / 60:.1f} m"
        if seconds < 3600
        else f"{seconds / 3600:.1f} h"
    )


def _wait(client: Client, workflow_id: str, *, as_json: bool) -> None:
    try:
        click.echo(f"waiting for {clean(workflow_id)} to end", err=True)
        wait_for_workflow(client, workflow_id)
    except KeyboardInterrupt:
        click.echo(f"\nThe workflow keeps running. To see it: foliot workflows show {workflow_id}", err=True)
        raise
    ended = client.get_workflow(workflow_id)
    click.echo(ended.content if as_json else describe(ended.document, SystemClock().now()))
    if ended.document["status"] != "completed":
        raise click.exceptions.Exit(1)


def _sentence(made: dict[str, Any]) -> str:
    now, name = SystemClock().now(), clean(made["name"] or "the workflow")
    if "schedule" in made:
        return f"{name} is {made['status']}; its first tick is at {at(made['next_at'], now)}"
    if "steps" not in made:
        return f"{name} starts at {at(made['scheduled_at'], now)}"
    return f"{name} is {made['status']}, with {len(made['steps'])} step{'' if len(made['steps']) == 1 else 's'}"
