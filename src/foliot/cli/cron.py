"""`foliot cron`: what an expression means, without a server."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import click
import msgspec

from foliot.clock import SystemClock
from foliot.errors import Invalid
from foliot.triggers.base import fire_times, to_datetime, to_instant
from foliot.triggers.cron import CronTrigger, parse_cron
from foliot.triggers.cron_fields import CronError
from foliot.triggers.explain import explain
from foliot.triggers.wall import DstFold, DstGap
from foliot.triggers.zones import zone_named


@click.group()
def command() -> None:
    """Show what a cron expression means."""


def zone_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option("--tz", "zone", default="UTC", metavar="ZONE", help="IANA time zone, such as Europe/Berlin.  [default: UTC]"),
        click.option("--seed", default="", help="What H is hashed from; a job uses its own id."),
        click.option("--dst-gap", type=click.Choice(["shift", "skip"]), default="shift", help="Times that a clock change skips."),
        click.option("--dst-fold", type=click.Choice(["first", "last", "both"]), default="first", help="Times that it repeats."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ):
        function = option(function)
    return function


@command.command("next")
@click.argument("expression", metavar="EXPR")
@click.option("--after", metavar="ISO", help="An instant with an offset.  [default: now]")
@click.option("--count", type=click.IntRange(1, 10_000), default=5, show_default=True, help="How many.")
@zone_options
def next_command(
    expression: str, after: str | None, count: int, zone: str, seed: str, dst_gap: DstGap, dst_fold: DstFold, as_json: bool
) -> None:
    """Print the next fire times, one ISO 8601 instant with offset a line."""
    found_zone = zone_named(zone)
    trigger = _parse(expression, found_zone, seed, dst_gap, dst_fold)
    start = SystemClock().now() if after is None else _instant(after, found_zone)
    times = [to_datetime(found).astimezone(found_zone).isoformat() for found in fire_times(trigger, to_instant(start), count)]
    if as_json:
        click.echo(msgspec.json.encode({"expression": expression, "timezone": zone, "times": times}))
        return
    for time in times:
        click.echo(time)


@command.command("explain")
@click.argument("expression", metavar="EXPR")
@zone_options
def explain_command(expression: str, zone: str, seed: str, dst_gap: DstGap, dst_fold: DstFold, as_json: bool) -> None:
    """Print the expression in words."""
    trigger = _parse(expression, zone_named(zone), seed, dst_gap, dst_fold)
    words = explain(trigger.fields)
    click.echo(msgspec.json.encode({"expression": expression, "meaning": words}) if as_json else words)


def _parse(expression: str, zone: ZoneInfo, seed: str, dst_gap: DstGap, dst_fold: DstFold) -> CronTrigger:
    try:
        return parse_cron(expression, zone, seed=seed, dst_gap=dst_gap, dst_fold=dst_fold)
    except CronError as error:
        # A tab or a new line would move what stands below.
        line = re.sub(r"\s", " ", expression)
        place = f"\n  {line}\n  {' ' * error.start}{'^' * (error.end - error.start)}" if error.end else ""
        raise Invalid(f"{error.detail}{place}", field=error.field) from None


def _instant(text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"--after {text!r}: not an ISO 8601 time, such as 2026-03-28T12:00:00+01:00", field="after") from None
    # Without an offset it is a time on the wall of the zone that was asked for.
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
