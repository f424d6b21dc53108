"""`foliot pause`."""

from __future__ import annotations

import click

from foliot.cli.options import instant, json_option
from foliot.cli.tables import at, clean
from foliot.clock import SystemClock
from foliot.sdk.client import Client


@click.command()
@click.argument("reference", metavar="NAME_OR_ID")
@click.option("--reason", help="Why, for those who look at it later.")
@click.option("--until", type=instant, metavar="ISO", help="Go on by itself then.")
@json_option
def command(reference: str, reason: str | None, until: str | None, as_json: bool) -> None:
    """Pause a recurring job. What falls into the pause is noted, not caught up."""
    with Client.from_environment() as client:
        answer = client.pause_job(reference, reason=reason, until=until)
    if as_json:
        click.echo(answer.content)
        return
    job = answer.document
    until_when = f" until {at(job['paused_until'], SystemClock().now())}" if job["paused_until"] else ""
    click.echo(f"{clean(job['name'])} is paused{until_when}", err=True)
