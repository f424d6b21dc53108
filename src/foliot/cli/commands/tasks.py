"""`foliot tasks`."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Any

import click
import msgspec

from foliot.cli.columns import Column
from foliot.cli.name_completion import task_names
from foliot.cli.options import json_option
from foliot.cli.payload_schemas import argument_table, arguments_in_short, example_payload
from foliot.cli.tables import Cell, away, clean, facts, table
from foliot.clock import SystemClock
from foliot.sdk.http_protocol import Answer, given
from foliot.sdk.operations import Operations

TASKS_MAX = 10_000
HEADERS = (
    "TASK",
    Column("QUEUE", leaves=3),
    "WORKERS",
    "VERSIONS",
    Column("ARGUMENTS", "text"),
    Column("DESCRIPTION", "text", 1),
)
everywhere_option = click.option("--everywhere", is_flag=True, help="In all namespaces, instead of only this one.")


@click.group(invoke_without_command=True)
@click.option("--disabled", "is_disabled", is_flag=True, help="List only disabled tasks: by whom and why.")
@json_option
@click.pass_context
def command(context: click.Context, is_disabled: bool, as_json: bool) -> None:
    """List the tasks that jobs may name; or show, disable or enable one."""
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: {"as_json": as_json}}
        return
    with Operations.from_environment() as client:
        if is_disabled:
            show_disabled(client.list_disabled_tasks(), as_json=as_json)
            return
        answer = client.list_tasks(limit=TASKS_MAX)
        if as_json:
            click.echo(answer.content)
            return
        items = answer.document["items"]
        click.echo(
            table(HEADERS, [row_of(task) for task in items]) or "No tasks: no worker has started.", err=not items
        )
        if any(task["is_disabled"] for task in items):
            click.echo()
            show_disabled(client.list_disabled_tasks(), as_json=False)


def row_of(task: dict[str, Any]) -> tuple[str | Cell, ...]:
    versions = Cell(f"{task['versions']} differ", "yellow") if task["versions"] > 1 else Cell("")
    workers = Cell("none", "red") if not task["workers"] else Cell(str(task["workers"]))
    arguments = arguments_in_short(task["schema"])
    return task["name"], task["queue"], workers, versions, arguments, clean(task["description"])


@command.command("show")
@click.argument("name", shell_complete=task_names)
@json_option
def show_command(name: str, as_json: bool) -> None:
    """Show a task: its arguments, and the workers that run each version of it."""
    with Operations.from_environment() as client:
        answer = client.get_task(name)
    click.echo(answer.content if as_json else describe(answer.document, SystemClock().now()))


def describe(task: dict[str, Any], now: datetime) -> str:
    known = facts([
        ("task", task["name"]),
        ("description", task["description"]),
        ("queue", task["queue"]),
        ("tags", ", ".join(task["tags"])),
        ("guarantee", task["guarantee"]),
        ("workers", str(task["workers"]) if task["workers"] else Cell("none; its jobs wait", "red")),
        ("announced", f"{task['announced_at']} ({away(task['announced_at'], now)})"),
        ("disabled", "yes: foliot tasks --disabled" if task["is_disabled"] else None),
    ])  # fmt: skip
    arguments = argument_table(task["schema"]) if task["schema"] else "It accepts any payload."
    parts = [known, arguments, versions_of(task)]
    if task["schema"]:
        payload = msgspec.json.encode(example_payload(task["schema"])).decode()
        parts.append(f"try  foliot submit {clean(task['name'])} --payload {shlex.quote(payload)} --wait")
    return "\n\n".join(part for part in parts if part)


def versions_of(task: dict[str, Any]) -> str:
    """The versions of the code that run at the same time, if they differ."""
    versions = task["live_versions"]
    if len(versions) < 2:
        return ""
    rows = [
        (
            "latest" if version["is_latest"] else "", ", ".join(worker["name"] for worker in version["workers"]),
            arguments_in_short(version["schema"]),
        )
        for version in versions
    ]  # fmt: skip
    shown = table(("VERSION", Column("WORKERS", "text"), Column("ARGUMENTS", "wrapped")), rows)
    return f"Workers run different versions. A payload is accepted if one of them takes it.\n{shown}"


@command.command("disable")
@click.argument("name")
@everywhere_option
@click.option("--reason", help="Reason to record.")
@json_option
def disable_command(name: str, everywhere: bool, reason: str | None, as_json: bool) -> None:
    """Disable a built-in task. New jobs with this task are rejected, and waiting ones fail when they start."""
    with Operations.from_environment() as client:
        show_disabled(client.disable_task(name, given(everywhere=everywhere or None, reason=reason)), as_json=as_json)


@command.command("enable")
@click.argument("name")
@everywhere_option
@json_option
def enable_command(name: str, everywhere: bool, as_json: bool) -> None:
    """Enable a disabled task."""
    with Operations.from_environment() as client:
        show_disabled(client.enable_task(name, given(everywhere=everywhere or None)), as_json=as_json)


def show_disabled(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        click.echo(answer.content)
    elif answer.document["items"]:
        click.echo(disabled_table(answer.document, SystemClock().now()))
    else:
        click.echo("No disabled tasks.", err=True)


def disabled_table(document: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            one["task"], "all namespaces" if one["everywhere"] else "this namespace", away(one["disabled_at"], now),
            clean(one["disabled_by"]), clean(one["reason"] or ""),
        )
        for one in document["items"]
    ]  # fmt: skip
    return table(("DISABLED TASK", "SCOPE", "SINCE", Column("BY", "text", 1), Column("REASON", "wrapped")), rows)
