"""`foliot pause`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import click

from foliot.cli.name_completion import job_names, queue_names
from foliot.cli.options import instant, json_option
from foliot.cli.tables import at, clean
from foliot.clock import SystemClock
from foliot.sdk.client import Client
from foliot.sdk.http_protocol import Answer


def what_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--yes", "is_sure", is_flag=True, help="Do not ask before several jobs are changed."),
        click.option(
            "--jobs",
            "pattern",
            metavar="PATTERN",
            help="All recurring jobs with such a name, as in 'report-*'; of --task, in --queue.",
        ),
        click.option("--everything", is_flag=True, help="All queues and tasks."),
        click.option("--task", help="A task, in whatever queue."),
        click.option("--queue", help="A queue.", shell_complete=queue_names),
    ):
        function = option(function)
    return function


def group_options(function: Callable[..., None]) -> Callable[..., None]:
    """Which recurring jobs, where nothing else can be meant."""
    for option in (
        click.option("--yes", "is_sure", is_flag=True, help="Do not ask before several jobs are changed."),
        click.option("--tag", help="All recurring jobs with this tag."),
        click.option("--task", help="All recurring jobs of this task."),
        click.option("--queue", help="All recurring jobs of this queue."),
        click.option(
            "--jobs", "name", metavar="PATTERN", help="All recurring jobs with such a name, as in 'report-*'."
        ),
    ):
        function = option(function)
    return function


def group_of(reference: str | None, filters: Mapping[str, str | None]) -> dict[str, str]:
    """Those that were given; none for a single job. Refuses both, and neither."""
    group = {name: value for name, value in filters.items() if value is not None}
    if (reference is not None) == bool(group):
        raise click.UsageError("say which: either the name of a job, or --jobs, --queue, --task or --tag")
    return group


def gate_of(reference: str | None, queue: str | None, task: str | None, *, everything: bool) -> str:
    """The path of what is to be paused or resumed; empty for a recurring job."""
    if sum([reference is not None, queue is not None, task is not None, everything]) != 1:
        raise click.UsageError("say what: the name of a job, or --jobs, --queue, --task or --everything")
    if queue is not None:
        return f"/queues/{quote(queue, safe='')}"
    return f"/tasks/{quote(task, safe='')}" if task is not None else "" if reference is not None else "/"


def alone(reference: str | None, *, everything: bool) -> None:
    if reference is not None or everything:
        raise click.UsageError("--jobs: stands alone, or with --task and --queue")


def change_group(
    call: Callable[[Mapping[str, Any]], Answer],
    verb: str,
    group: Mapping[str, Any],
    *,
    is_sure: bool,
    as_json: bool,
    past: str = "",
) -> None:
    """Says how many jobs fit, asks, and changes exactly those, or none when they have become others."""
    given = {name: value for name, value in group.items() if value is not None}
    count = call(given | {"dry_run": True}).document["count"]
    if not is_sure and count:
        click.confirm(f"{count} jobs fit. {verb.capitalize()} them?", abort=True, err=True)
    answer = call(given | {"expected": count})
    if as_json:
        click.echo(answer.content)
        return
    for name in answer.document["names"]:
        click.echo(clean(name))
    if kept := answer.document.get("kept"):
        click.echo(f"kept, because other jobs depend on them: {', '.join(map(clean, kept))}", err=True)
    click.echo(f"{past or f'{verb}d'}: {answer.document['count']}", err=True)


@click.command()
@click.argument("reference", metavar="[NAME_OR_ID]", required=False, shell_complete=job_names)
@what_options
@click.option("--reason", help="Why, for those who look at it later.")
@click.option("--until", type=instant, metavar="ISO", help="Go on by itself then.")
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
    """Pause a recurring job, several of them, or a queue, a task or everything.

    What falls into the pause of a job is noted, not caught up. Of a paused queue or task nothing is started; what runs
    goes on, and jobs are accepted.
    """
    if pattern is not None:
        alone(reference, everything=everything)
        group = {"name": pattern, "task": task, "queue": queue, "reason": reason, "until": until}
        with Client.from_environment() as client:
            change_group(client.pause_jobs, "pause", group, is_sure=is_sure, as_json=as_json)
        return
    gate = gate_of(reference, queue, task, everything=everything)
    with Client.from_environment() as client:
        answer = (
            client.pause_gate(gate, reason=reason, until=until)
            if gate
            else client.pause_job(reference or "", reason=reason, until=until)
        )
    if as_json:
        click.echo(answer.content)
        return
    if gate:
        click.echo(f"{clean(queue or task or 'everything')} is paused", err=True)
        return
    job = answer.document
    until_when = f" until {at(job['paused_until'], SystemClock().now())}" if job["paused_until"] else ""
    click.echo(f"{clean(job['name'])} is paused{until_when}", err=True)
