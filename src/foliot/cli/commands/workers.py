"""`foliot workers`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from foliot.cli.columns import Column
from foliot.cli.name_completion import worker_ids
from foliot.cli.options import json_option
from foliot.cli.output import Output, output_options
from foliot.cli.short_ids import worker_id as full_worker_id
from foliot.cli.tables import Cell, away, clean, table
from foliot.sdk.operations import Operations

HEADERS = (
    Column("WORKER", "id"),
    Column("NAME", "text"),
    "HEALTH",
    "RUNNING",
    Column("QUEUES", "text"),
    Column("LABELS", "text", 3),
    Column("HEARTBEAT", leaves=1),
    Column("STARTED", leaves=2),
)
COLOURS = {"healthy": "green", "late": "red", "draining": "yellow"}


@click.group(invoke_without_command=True)
@output_options
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List live workers; or drain a worker."""
    if output.pass_to_subcommand(context):
        return
    with Operations.from_environment() as client:
        output.show(client.list_workers, worker_table, nothing="No workers.")


def worker_table(answer: dict[str, Any], now: datetime) -> str:
    rows = [
        (
            worker["id"], worker["name"], Cell(clean(worker["health"]), COLOURS.get(worker["health"])),
            _running(worker), " ".join(f"{queue}={slots}" for queue, slots in worker["queues"].items()),
            " ".join(f"{name}={value}" for name, value in worker["labels"].items()), away(worker["last_beat_at"], now),
            away(worker["started_at"], now),
        )
        for worker in answer["items"]
    ]  # fmt: skip
    return table(HEADERS, rows)


def _running(worker: dict[str, Any]) -> str:
    left = f", {worker['left_running']} not stopping" if worker["left_running"] else ""
    return f"{worker['running']} of {worker['slots']}{left}"


@command.command("drain")
@click.argument("worker_id", metavar="WORKER_ID", shell_complete=worker_ids)
@json_option
def drain_command(worker_id: str, as_json: bool) -> None:
    """Drain a worker: it finishes its running jobs and claims no more."""
    with Operations.from_environment() as client:
        answer = client.drain_worker(full_worker_id(client, worker_id))
    if as_json:
        click.echo(answer.content)
        return
    click.echo(f"{clean(answer.document['name'])} is draining; running: {answer.document['running']}", err=True)
