"""`foliot pause`."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import click

from foliot.cli.options import instant, json_option
from foliot.cli.tables import at, clean
from foliot.clock import SystemClock
from foliot.sdk.client import Client


def what_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--everything", is_flag=True, help="All queues and tasks."),
        click.option("--task", help="A task, in whatever queue."),
        click.option("--queue", help="A queue."),
    ):
        function = option(function)
    return function


def gate_of(reference: str | None, queue: str | None, task: str | None, *, everything: bool) -> str:
    """The path of what is to be paused or resumed; empty for a recurring job."""
    if sum([reference is not None, queue is not None, task is not None, everything]) != 1:
        raise click.UsageError("say what: the name of a job, or --queue, --task or --everything")
    if queue is not None:
        return f"/queues/{quote(queue, safe='')}"
    return f"/tasks/{quote(task, safe='')}" if task is not None else "" if reference is not None else "/"


@click.command()
@click.argument("reference", metavar="[NAME_OR_ID]", required=False)
@what_options
@click.option("--reason", help="Why, for those who look at it later.")
@click.option("--until", type=instant, metavar="ISO", help="Go on by itself then.")
@json_option
def command(
    reference: str | None, queue: str | None, task: str | None, everything: bool, reason: str | None, until: str | None, as_json: bool
) -> None:
    """Pause a recurring job, or a queue, a task or everything.

    What falls into the pause of a job is noted, not caught up. Of a paused queue or task nothing is started; what runs goes on, and jobs
    are accepted.
    """
    gate = gate_of(reference, queue, task, everything=everything)
    with Client.from_environment() as client:
        answer = (
            client.pause_gate(gate, reason=reason, until=until) if gate else client.pause_job(reference or "", reason=reason, until=until)
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
