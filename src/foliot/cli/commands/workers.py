"""`foliot workers`: who works, and draining one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from foliot.cli.name_completion import worker_ids
from foliot.cli.options import json_option
from foliot.cli.output import Output, output_options
from foliot.cli.tables import Cell, away, clean, table
from foliot.sdk.operations import Operations

COLOURS = {"healthy": "green", "late": "red", "draining": "yellow"}


@click.group(invoke_without_command=True)
@output_options
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List the workers that live; or drain one."""
    if output.hand_on(context):
        return
    with Operations.from_environment() as client:
        output.show(client.list_workers, worker_table, nothing="There are no workers.")


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
    return table(("WORKER", "NAME", "HEALTH", "RUNNING", "QUEUES", "LABELS", "LAST BEAT", "STARTED"), rows)


def _running(worker: dict[str, Any]) -> str:
    left = f", {worker['left_running']} do not stop" if worker["left_running"] else ""
    return f"{worker['running']} of {worker['slots']}{left}"


@command.command("drain")
@click.argument("worker_id", metavar="WORKER_ID", shell_complete=worker_ids)
@json_option
def drain_command(worker_id: str, as_json: bool) -> None:
    """Let a worker finish what it runs, and take nothing more."""
    with Operations.from_environment() as client:
        answer = client.drain_worker(worker_id)
    if as_json:
        click.echo(answer.content)
        return
    click.echo(f"{clean(answer.document['name'])} takes nothing more; it runs {answer.document['running']}", err=True)
