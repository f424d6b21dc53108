"""`foliot bench`: what this installation does, seen from one client of its API."""

from __future__ import annotations

import shutil
from typing import Any

import click
import msgspec

from foliot.cli.bench_measurements import Bench, Measured
from foliot.cli.name_completion import queue_names
from foliot.cli.options import json_option
from foliot.cli.tables import table
from foliot.sdk.operations import Operations

MEANING = (
    "Submitted: what one program with {connections} connections gets stored, one by one or {batch} at a time. "
    "Executed: how quickly the workers were through with the batches; each run does nothing.",
    "The times, but for the first, are read off the database's clock while there is little else to do: from being stored to being "
    "started and finished, and from a tick of a recurring job to the start of its run.",
)


@click.command()
@click.option(
    "--queue", help="A queue that workers serve.  [default: default]", default="default", shell_complete=queue_names
)
@click.option(
    "--seconds", type=click.FloatRange(2, 600), default=20.0, show_default=True, help="How long to measure at the most."
)
@click.option(
    "--connections", type=click.IntRange(1, 64), default=8, show_default=True, help="Requests at the same time."
)
@json_option
def command(queue: str, seconds: float, connections: int, as_json: bool) -> None:
    """Measure this installation: how many jobs a second, how soon they start, and how late a schedule fires.

    It submits runs of the task simulate that do nothing, and one recurring job. What has not ended is cancelled in the
    end, and the recurring job deleted; what has run stays in history, under a name that begins with "foliot bench".
    Other work goes on meanwhile, and is slowed down by it.
    """
    with Operations.from_environment() as client:
        measured = Bench(client, queue=queue, seconds=seconds, connections=connections, is_quiet=as_json).run()
    click.echo(msgspec.json.encode(measured) if as_json else told(measured))
    if measured.left:
        click.echo(f"foliot: {measured.left} runs had not ended in time and were cancelled", err=True)


def told(measured: Measured) -> str:
    rates = [
        ("submitted one by one", measured.submitted),
        ("submitted in batches", measured.batched),
        ("executed", measured.executed),
    ]
    times = [
        ("a submit's answer", measured.answer_ms),
        ("stored to started", measured.start_ms),
        ("stored to finished", measured.finish_ms),
        ("tick to started", measured.tick_ms),
    ]
    rate_table = table(
        ("JOBS", "A SECOND", "NUMBER"), [(name, f"{rate.per_second:,.0f}", f"{rate.number:,}") for name, rate in rates]
    )
    time_table = table(
        ("MILLISECONDS", "P50", "P95", "P99", "NUMBER"),
        [(name, *_shown(found), f"{found.number:,}") for name, found in times],
    )
    columns = shutil.get_terminal_size().columns
    meaning = "\n\n".join(
        click.wrap_text(
            text.format(connections=measured.connections, batch=measured.batch_size), width=min(max(columns, 20), 100)
        )
        for text in MEANING
    )
    where = f"Queue {measured.queue}: {measured.workers} workers with {measured.slots} slots; {measured.seconds:.1f} s"
    return f"{where}\n\n{rate_table}\n\n{time_table}\n\n{meaning}"


def _shown(found: Any) -> tuple[str, str, str]:
    if not found.number:
        return "-", "-", "-"
    p50, p95, p99 = (f"{value:,.1f}" for value in (found.p50, found.p95, found.p99))
    return p50, p95, p99
