"""`foliot cron`: explains cron expressions, without a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from zoneinfo import ZoneInfo

import click
import msgspec

from foliot.cli.options import Choice
from foliot.clock import SystemClock
from foliot.errors import Invalid
from foliot.triggers.base import Trigger, fire_times, to_datetime, to_instant
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import MAX_LENGTH, CronError
from foliot.triggers.description import explain, explain_period, notes_on
from foliot.triggers.dst import DstFold, DstGap, WallPolicy
from foliot.triggers.durations import parse_duration
from foliot.triggers.interval import IntervalTrigger
from foliot.triggers.notation import Notation, read_notation
from foliot.triggers.zones import zone_named


@click.group()
def command() -> None:
    """Explain a cron expression, or list its next times."""


def zone_options(function: click.decorators.FC) -> click.decorators.FC:
    for option in (
        click.option(
            "--tz",
            "zone",
            metavar="ZONE",
            help="IANA time zone, such as Europe/Berlin.  [default: CRON_TZ= in EXPR, or UTC]",
        ),
        click.option("--seed", default="", help="Seed for H; a job uses its own id."),
        click.option(
            "--dst-gap",
            type=Choice(["shift", "skip"]),
            default="shift",
            help="How to treat times that a clock change skips.",
        ),
        click.option(
            "--dst-fold",
            type=Choice(["first", "last", "both"]),
            default="first",
            help="How to treat times that a clock change repeats.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    ):
        function = option(function)
    return function


@command.command("next")
@click.argument("expression", metavar="EXPR")
@click.option("--after", metavar="ISO", help="List times after this one.  [default: now]")
@click.option("--count", type=click.IntRange(1, 10_000), default=5, show_default=True, help="Number of times to list.")
@zone_options
def next_command(
    expression: str,
    after: str | None,
    count: int,
    zone: str | None,
    seed: str,
    dst_gap: DstGap,
    dst_fold: DstFold,
    as_json: bool,
) -> None:
    """Print the next times of the expression, one ISO 8601 time with UTC offset per line."""
    notation, found_zone = _read(expression, zone)
    start = to_instant(SystemClock().now() if after is None else _instant(after, found_zone))
    trigger: Trigger
    if notation.every is None:
        with _pointing_at(expression):
            trigger = parse_cron(expression, found_zone, seed=seed, dst_gap=dst_gap, dst_fold=dst_fold)
    else:
        # A job counts from its creation; here, from the instant to start at.
        trigger = IntervalTrigger(
            parse_duration(notation.every, field="every"), start, WallPolicy(found_zone, dst_gap, dst_fold)
        )
    times = [to_datetime(found).astimezone(found_zone).isoformat() for found in fire_times(trigger, start, count)]
    if as_json:
        click.echo(msgspec.json.encode({"expression": expression, "timezone": found_zone.key, "times": times}))
        return
    for time in times:
        click.echo(time)
    if not times:
        click.echo("the expression never fires after that time", err=True)


@command.command("explain")
@click.argument("expression", metavar="EXPR")
@zone_options
def explain_command(
    expression: str, zone: str | None, seed: str, dst_gap: DstGap, dst_fold: DstFold, as_json: bool
) -> None:
    """Print the expression in words, with notes on what might be surprising."""
    notation, found_zone = _read(expression, zone)
    if notation.every is None:
        with _pointing_at(expression):
            fields = parse_cron(expression, found_zone, seed=seed, dst_gap=dst_gap, dst_fold=dst_fold).fields
        words, notes = explain(fields), notes_on(fields)
    else:
        words, notes = explain_period(parse_duration(notation.every, field="every")), []
    if notation.zone is not None:
        words += f", in the time zone {notation.zone}"
    if as_json:
        click.echo(msgspec.json.encode({"expression": expression, "meaning": words, "notes": notes}))
        return
    click.echo(words)
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _read(expression: str, zone: str | None) -> tuple[Notation, ZoneInfo]:
    """Parses the expression. The zone is that of --tz, or else that of the expression."""
    with _pointing_at(expression):
        notation = read_notation(expression)
    if zone is not None and notation.zone not in (None, zone):
        raise Invalid(
            f"--tz: the expression names {notation.zone} and --tz names {zone}; leave one of them out", field="timezone"
        )
    return notation, zone_named(zone if zone is not None else notation.zone or "UTC")


@contextmanager
def _pointing_at(expression: str) -> Iterator[None]:
    """Marks the position of an error in the expression."""
    try:
        yield
    except CronError as error:
        raise Invalid(f"{error.detail}{_place(expression, error)}", field=error.field) from None


def _place(expression: str, error: CronError) -> str:
    if not error.end or len(expression) > MAX_LENGTH:
        return ""
    # A tab or a newline would misalign the markers below.
    line = re.sub(r"\s", " ", expression)
    return f"\n  {line}\n  {' ' * error.start}{'^' * (error.end - error.start)}"


def _instant(text: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(
            f"--after {text!r}: not an ISO 8601 time, such as 2026-03-28T12:00:00+01:00", field="after"
        ) from None
    # Without an offset it is a local time in the requested zone.
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
