"""`foliot queues`."""

from __future__ import annotations

from typing import Any

import click

from foliot.cli.options import json_option
from foliot.cli.tables import Cell, table
from foliot.sdk.operations import Operations


@click.command()
@json_option
def command(as_json: bool) -> None:
    """List the queues: what waits in each, what runs, and who works on it."""
    with Operations.from_environment() as client:
        answer = client.list_queues()
    if as_json:
        click.echo(answer.content)
        return
    queues = answer.document["items"]
    if not queues:
        click.echo("There are no queues yet.", err=True)
        return
    rows = [
        (
            queue["name"], _count(queue["ready"]), _count(queue["running"]), _count(queue["scheduled"]), _count(queue["held"]),
            "" if queue["oldest_ready_seconds"] is None else f"{queue['oldest_ready_seconds']:.0f} s",
            f"{queue['slots']}", f"{queue['workers']}", Cell("paused", "yellow") if queue["paused"] else "",
            _limit(queue["max_running"]), _limit(queue["max_depth"]),
        )
        for queue in queues
    ]  # fmt: skip
    headers = ("QUEUE", "READY", "RUNNING", "SCHEDULED", "HELD", "OLDEST", "SLOTS", "WORKERS", "PAUSED", "MAX RUNNING", "MAX DEPTH")
    click.echo(table(headers, rows))


def _count(count: dict[str, Any]) -> str:
    return f"{count['count']}+" if count["more"] else str(count["count"])


def _limit(limit: int | None) -> str:
    return "" if limit is None else str(limit)
