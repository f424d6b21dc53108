"""`foliot resume`."""

from __future__ import annotations

import click

from foliot.cli.commands.pause import change_group, gate_name, gate_of, require_pattern_only, target_options
from foliot.cli.name_completion import job_names
from foliot.cli.options import json_option
from foliot.cli.short_ids import job_reference
from foliot.cli.tables import at, clean
from foliot.clock import SystemClock
from foliot.sdk.client import Client


@click.command()
@click.argument("reference", metavar="[NAME_OR_ID]", required=False, shell_complete=job_names)
@target_options
@click.option("--circuit", metavar="TASK", help="Close the open circuit breaker of this task.")
@json_option
def command(
    reference: str | None,
    queue: str | None,
    task: str | None,
    everything: bool,
    circuit: str | None,
    pattern: str | None,
    is_sure: bool,
    as_json: bool,
) -> None:
    """Resume a recurring job, several of them, a queue, a task or everything; or close a circuit breaker.

    A resumed job continues with its next tick from now on. `foliot pauses` lists all pauses.
    """
    if circuit is not None:
        close_circuit(circuit, others=(reference, queue, task, pattern, everything or None), as_json=as_json)
        return
    if pattern is not None:
        require_pattern_only(reference, everything=everything)
        with Client.from_environment() as client:
            group = {"name": pattern, "task": task, "queue": queue}
            change_group(client.resume_jobs, "resume", group, is_sure=is_sure, as_json=as_json)
        return
    gate = gate_of(reference, queue, task, everything=everything)
    with Client.from_environment() as client:
        answer = client.resume_gate(gate) if gate else client.resume_job(job_reference(client, reference or ""))
    if as_json:
        click.echo(answer.content)
        return
    if gate:
        click.echo(f"{gate_name(queue, task)} is resumed", err=True)
        return
    job = answer.document
    next_tick = (
        f"its next tick is at {at(job['next_at'], SystemClock().now())}" if job["next_at"] else "it has no ticks left"
    )
    click.echo(f"{clean(job['name'])} is {job['status']}; {next_tick}", err=True)


def close_circuit(task: str, *, others: tuple[object, ...], as_json: bool) -> None:
    if any(other is not None for other in others):
        raise click.UsageError("--circuit: can't be combined with another thing to resume")
    with Client.from_environment() as client:
        is_open = any(one["task"] == task and one["open_until"] for one in client.list_circuits().document["items"])
        answer = client.close_circuit(task)
    if as_json:
        click.echo(answer.content)
        return
    was = "is closed; its runs start again" if is_open else "was not open"
    click.echo(f"the circuit breaker of {clean(task)} {was}", err=True)
