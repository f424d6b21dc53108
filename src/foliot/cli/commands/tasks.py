"""`foliot tasks`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from foliot.cli.options import json_option
from foliot.cli.tables import away, clean, table
from foliot.clock import SystemClock
from foliot.sdk.http_protocol import Answer, given
from foliot.sdk.operations import Operations

everywhere_option = click.option("--everywhere", is_flag=True, help="In all namespaces, instead of only this one.")


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the disabled built-in tasks; or disable or enable one."""
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: {"as_json": as_json}}
        return
    with Operations.from_environment() as client:
        show(client.list_disabled_tasks(), as_json=as_json)


@command.command("disable")
@click.argument("name")
@everywhere_option
@click.option("--reason", help="Reason to record.")
@json_option
def disable_command(name: str, everywhere: bool, reason: str | None, as_json: bool) -> None:
    """Disable a built-in task. New jobs with this task are rejected, and waiting ones fail when they start."""
    with Operations.from_environment() as client:
        show(client.disable_task(name, given(everywhere=everywhere or None, reason=reason)), as_json=as_json)


@command.command("enable")
@click.argument("name")
@everywhere_option
@json_option
def enable_command(name: str, everywhere: bool, as_json: bool) -> None:
    """Enable a disabled task."""
    with Operations.from_environment() as client:
        show(client.enable_task(name, given(everywhere=everywhere or None)), as_json=as_json)


def show(answer: Answer, *, as_json: bool) -> None:
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
    return table(("DISABLED TASK", "SCOPE", "SINCE", "BY", "REASON"), rows)
