"""`foliot pause`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import click

from foliot.cli.local_times import LOCAL, has_offset, job_zone, local_zone, located
from foliot.cli.name_completion import job_names, queue_names
from foliot.cli.options import instant, json_option
from foliot.cli.short_ids import job_reference
from foliot.cli.tables import at, clean
from foliot.clock import SystemClock
from foliot.sdk.client import Client
from foliot.sdk.http_protocol import Answer


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation."),
        click.option(
            "--jobs",
            "pattern",
            metavar="PATTERN",
            help="All recurring jobs with a matching name, such as 'report-*'; narrow with --task and --queue.",
        ),
        click.option("--everything", is_flag=True, help="Everything: all queues and tasks."),
        click.option("--task", help="This task, in all queues."),
        click.option("--queue", help="This queue.", shell_complete=queue_names),
    ):
        function = option(function)
    return function


def group_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that select several recurring jobs."""
    for option in (
        click.option("--yes", "is_sure", is_flag=True, help="Do not ask for confirmation."),
        click.option("--tag", help="All recurring jobs with this tag."),
        click.option("--task", help="All recurring jobs of this task."),
        click.option("--queue", help="All recurring jobs in this queue."),
        click.option(
            "--jobs", "name", metavar="PATTERN", help="All recurring jobs with a matching name, such as 'report-*'."
        ),
    ):
        function = option(function)
    return function


def group_of(reference: str | None, filters: Mapping[str, str | None]) -> dict[str, str]:
    """The given filters; empty for a single job. Requires either a job or filters, but not both."""
    group = {name: value for name, value in filters.items() if value is not None}
    if (reference is not None) == bool(group):
        raise click.UsageError("give either NAME_OR_ID, or --jobs, --queue, --task or --tag")
    return group


def gate_of(reference: str | None, queue: str | None, task: str | None, *, everything: bool) -> str:
    """The API path of the gate to pause or resume; empty for a recurring job."""
    if sum([reference is not None, queue is not None, task is not None, everything]) != 1:
        raise click.UsageError("give one of NAME_OR_ID, --jobs, --queue, --task or --everything")
    if queue is not None:
        return f"/queues/{quote(queue, safe='')}"
    return f"/tasks/{quote(task, safe='')}" if task is not None else "" if reference is not None else "/"


def gate_name(queue: str | None, task: str | None) -> str:
    return f"queue {clean(queue)}" if queue else f"task {clean(task)}" if task else "everything"


def require_pattern_only(reference: str | None, *, everything: bool) -> None:
    if reference is not None or everything:
        raise click.UsageError("--jobs: can be combined only with --task and --queue")


def change_group(
    call: Callable[[Mapping[str, Any]], Answer],
    verb: str,
    group: Mapping[str, Any],
    *,
    is_sure: bool,
    as_json: bool,
    past: str = "",
) -> None:
    """Counts the matching jobs, asks for confirmation, and changes them; or none if their number has changed."""
    given = {name: value for name, value in group.items() if value is not None}
    count = call(given | {"dry_run": True}).document["count"]
    if not is_sure and count:
        click.confirm(f"{verb.capitalize()} {'1 job' if count == 1 else f'{count} jobs'}?", abort=True, err=True)
    answer = call(given | {"expected": count})
    if as_json:
        click.echo(answer.content)
        return
    for name in answer.document["names"]:
        click.echo(clean(name))
    if kept := answer.document.get("kept"):
        click.echo(f"not deleted, because other jobs depend on them: {', '.join(map(clean, kept))}", err=True)
    click.echo(f"{past or f'{verb}d'}: {answer.document['count']}", err=True)


@click.command()
@click.argument("reference", metavar="[NAME_OR_ID]", required=False, shell_complete=job_names)
@target_options
@click.option("--reason", help="Reason to record.")
@click.option(
    "--until",
    type=instant,
    metavar="ISO",
    help="Resume automatically at this time, in the job's or this machine's time zone unless it has an offset.",
)
@json_option
def command(
    reference: str | None,
    queue: str | None,
    task: str | None,
    everything: bool,
    pattern: str | None,
    is_sure: bool,
    reason: str | None,
    until: str | None,
    as_json: bool,
) -> None:
    """Pause a recurring job, several of them, a queue, a task or everything.

    Ticks of a paused job are recorded as paused and do not run later. While a queue or task is paused, running jobs
    continue and new jobs are accepted, but none are started.
    """
    if pattern is not None:
        require_pattern_only(reference, everything=everything)
        until = until and located("--until", until, local_zone(), LOCAL)
        group = {"name": pattern, "task": task, "queue": queue, "reason": reason, "until": until}
        with Client.from_environment() as client:
            change_group(client.pause_jobs, "pause", group, is_sure=is_sure, as_json=as_json)
        return
    gate = gate_of(reference, queue, task, everything=everything)
    with Client.from_environment() as client:
        if until is not None and not has_offset(until):
            zone, whose = (local_zone(), LOCAL) if gate else job_zone(client, reference or "")
            until = located("--until", until, zone, whose)
        answer = (
            client.pause_gate(gate, reason=reason, until=until)
            if gate
            else client.pause_job(job_reference(client, reference or ""), reason=reason, until=until)
        )
    if as_json:
        click.echo(answer.content)
        return
    if gate:
        until_when = f" until {at(until, SystemClock().now())}" if until else ""
        click.echo(f"{gate_name(queue, task)} is paused{until_when}", err=True)
        return
    job = answer.document
    until_when = f" until {at(job['paused_until'], SystemClock().now())}" if job["paused_until"] else ""
    click.echo(f"{clean(job['name'])} is paused{until_when}", err=True)
