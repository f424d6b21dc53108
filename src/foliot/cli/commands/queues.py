"""`foliot queues`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import click

from foliot.cli.columns import Column
from foliot.cli.name_completion import queue_names
from foliot.cli.options import json_option
from foliot.cli.output import Output, output_options
from foliot.cli.tables import Cell, clean, table
from foliot.errors import PreconditionFailed
from foliot.sdk.http_protocol import Answer, Document
from foliot.sdk.operations import Operations

UNLIMITED = "none"
ATTEMPTS = 5
HEADERS = (
    Column("QUEUE", "text"),
    "READY",
    "RUNNING",
    Column("SCHEDULED", leaves=2),
    "HELD",
    Column("OLDEST", leaves=1),
    "SLOTS",
    "WORKERS",
    "PAUSED",
)


class Limit(click.ParamType[int | str]):
    """A number, or `none` for no limit."""

    name = "N|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == UNLIMITED:
            return UNLIMITED
        return click.IntRange(1, 1_000_000_000).convert(value, param, ctx)


@click.group(invoke_without_command=True)
@output_options
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List queues with their backlog, running jobs and workers; or set the limits of a queue.

    A limit is shown after its count: `3 of 10`.
    """
    if output.pass_to_subcommand(context):
        return
    with Operations.from_environment() as client:
        output.show(client.list_queues, queue_table, nothing="No queues yet.")


@command.command("set")
@click.argument("name", shell_complete=queue_names)
@click.option("--max-running", type=Limit(), help="Maximum number of runs that run at once.")
@click.option(
    "--max-depth",
    type=Limit(),
    help="Maximum number of runs that wait; further jobs are rejected with 429.",
)
@json_option
def set_command(name: str, as_json: bool, **given: Any) -> None:
    """Set or remove limits of a queue, in all its workers together. A limit that you do not give stays as it is.

    The slots of a worker are set where it starts: foliot worker --queue NAME=SLOTS.
    """
    limits = {field: None if value == UNLIMITED else value for field, value in given.items() if value is not None}
    if not limits:
        raise click.UsageError("give --max-running or --max-depth: a number, or none for no limit")
    with Operations.from_environment() as client:
        before, answer = change_limits(client, name, limits)
    if as_json:
        click.echo(answer.content)
        return
    after = answer.document
    parts = [
        f"{field.replace('_', ' ')} {_said(after[field])} (was {_said(before[field])})" if field in limits
        else f"{field.replace('_', ' ')} {_said(after[field])}"
        for field in ("max_running", "max_depth")
    ]  # fmt: skip
    click.echo(f"queue {clean(name)}: {', '.join(parts)}", err=True)


def change_limits(client: Operations, name: str, limits: Mapping[str, int | None]) -> tuple[Document, Answer]:
    """The limits before the change, and the answer to it. Repeats the change if somebody else changed them meanwhile,
    so that the limits before are the true ones."""
    for _ in range(ATTEMPTS - 1):
        before = client.get_queue(name)
        with suppress(PreconditionFailed):
            return before.document, client.change_queue(name, limits, if_match=before.etag)
    before = client.get_queue(name)
    return before.document, client.change_queue(name, limits, if_match=before.etag)


def _said(limit: int | None) -> str:
    return UNLIMITED if limit is None else str(limit)


def queue_table(answer: dict[str, Any], _: datetime) -> str:
    rows = [
        (
            queue["name"],
            _of(_count(queue["ready"]), queue["max_depth"]),
            _of(_count(queue["running"]), queue["max_running"]),
            _count(queue["scheduled"]),
            _count(queue["held"]),
            "" if queue["oldest_ready_seconds"] is None else f"{queue['oldest_ready_seconds']:.0f} s",
            f"{queue['slots']}",
            f"{queue['workers']}",
            Cell("paused", "yellow") if queue["paused"] else "",
        )
        for queue in answer["items"]
    ]
    return table(HEADERS, rows)


def _count(count: dict[str, Any]) -> str:
    return f"{count['count']}+" if count["more"] else str(count["count"])


def _of(count: str, limit: int | None) -> str:
    """A count and its limit: `3 of 10`."""
    return count if limit is None else f"{count} of {limit}"
