"""`foliot queues`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from foliot.cli.output import Output, output_options
from foliot.cli.tables import Cell, table
from foliot.sdk.operations import Operations


@click.command()
@output_options
def command(output: Output) -> None:
    """List queues with their backlog, running jobs and workers."""
    with Operations.from_environment() as client:
        output.show(client.list_queues, queue_table, nothing="No queues yet.")


def queue_table(answer: dict[str, Any], _: datetime) -> str:
    rows = [
        (
            queue["name"],
            _count(queue["ready"]),
            _count(queue["running"]),
            _count(queue["scheduled"]),
            _count(queue["held"]),
            "" if queue["oldest_ready_seconds"] is None else f"{queue['oldest_ready_seconds']:.0f} s",
            f"{queue['slots']}",
            f"{queue['workers']}",
            Cell("paused", "yellow") if queue["paused"] else "",
            _limit(queue["max_running"]),
            _limit(queue["max_depth"]),
        )
        for queue in answer["items"]
    ]
    headers = (
        "QUEUE",
        "READY",
        "RUNNING",
        "SCHEDULED",
        "HELD",
        "OLDEST",
        "SLOTS",
        "WORKERS",
        "PAUSED",
        "MAX RUNNING",
        "MAX DEPTH",
    )
    return table(headers, rows)


def _count(count: dict[str, Any]) -> str:
    return f"{count['count']}+" if count["more"] else str(count["count"])


def _limit(limit: int | None) -> str:
    return "" if limit is None else str(limit)
