"""`foliot bench`: measures an installation from one client of its API."""

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
    "Submitted: jobs stored by one client with {connections} connections, one by one or in batches of {batch}. "
    "Executed: how fast the workers finished the batches. The runs do nothing.",
    "All times except the first come from the database's clock and are measured while the system is otherwise idle: "
    "from storing a job to the start and end of its run, and from the tick of a recurring job to the start of its run.",
)


@click.command()
@click.option(
    "--queue",
    help="Queue to use; a worker must serve it.  [default: default]",
    default="default",
    shell_complete=queue_names,
)
@click.option(
    "--seconds",
    type=click.FloatRange(2, 600),
    default=20.0,
    show_default=True,
    help="Maximum duration of the measurement.",
)
@click.option(
    "--connections", type=click.IntRange(1, 64), default=8, show_default=True, help="Number of concurrent requests."
)
@json_option
def command(queue: str, seconds: float, connections: int, as_json: bool) -> None:
    """Measure jobs per second, start latency, and the delay of scheduled runs.

    The benchmark submits runs of the task simulate that do nothing, and one recurring job. At the end it cancels
    unfinished runs and deletes the recurring job. Finished runs stay in the history, with names that begin with "foliot
    bench". Other jobs keep running, but more slowly.
    """
    with Operations.from_environment() as client:
        measured = Bench(client, queue=queue, seconds=seconds, connections=connections, is_quiet=as_json).run()
    click.echo(msgspec.json.encode(measured) if as_json else report(measured))
    if measured.left:
        click.echo(f"foliot: {measured.left} runs did not finish in time and were cancelled", err=True)


def report(measured: Measured) -> str:
    rates = [
        ("submitted one by one", measured.submitted),
        ("submitted in batches", measured.batched),
        ("executed", measured.executed),
    ]
    times = [
        ("submit response", measured.answer_ms),
        ("stored to start", measured.start_ms),
        ("stored to end", measured.finish_ms),
        ("tick to start", measured.tick_ms),
    ]
    rate_table = table(
        ("JOBS", "PER SECOND", "COUNT"), [(name, f"{rate.per_second:,.0f}", f"{rate.number:,}") for name, rate in rates]
    )
    time_table = table(
        ("MILLISECONDS", "P50", "P95", "P99", "COUNT"),
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
