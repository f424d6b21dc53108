"""The text around a cron expression, or in place of one: `CRON_TZ=Europe/Berlin ...`, `@every 5m`, `cron(...)` and
`rate(...)` of AWS.

Each of them says something that a schedule has a field of its own for, so it is taken apart where it is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from foliot.errors import Invalid
from foliot.triggers.cron_fields import WEEKDAYS, CronError, check_length
from foliot.triggers.durations import parse_duration
from foliot.triggers.zones import zone_named

ZONE = re.compile(r"\s*(?P<name>CRON_TZ|TZ)=(?P<zone>\S*)", re.IGNORECASE)
EVERY = re.compile(r"@every\s+(?P<period>\S.*)", re.IGNORECASE | re.DOTALL)
CALL = re.compile(r"(?P<name>cron|rate|at)\s*\((?P<inside>[^()]*(?:\([^()]*\)[^()]*)*)\)", re.IGNORECASE)
RATE = re.compile(r"(?P<number>[0-9]{1,9})\s+(?P<unit>minute|hour|day)s?", re.IGNORECASE)
# A number of a weekday, rather than of a step or of the week in the month.
AWS_WEEKDAY = re.compile(r"(?<![0-9/#])[0-9]+")


@dataclass(frozen=True, slots=True)
class Notation:
    expression: str
    """In the grammar of `cron_fields`; what stood before it is blank, so that places stay what they were. Empty beside
    `every`."""
    zone: str | None = None
    every: str | None = None
    is_rewritten: bool = False
    """Places in the expression are not those in the text."""


def read_notation(text: str) -> Notation:
    """Raises `CronError` for a zone or a period that makes no sense; the expression itself is not looked at."""
    check_length(text)
    zone = None
    if found := ZONE.match(text):
        zone = _zone(found)
        text = " " * found.end() + text[found.end() :]
    inside = text.strip()
    if found := EVERY.fullmatch(inside):
        return Notation("", zone, _period(found["period"].strip(), text))
    if found := CALL.fullmatch(inside):
        return _called(found["name"].lower(), found["inside"].strip(), zone, text)
    return Notation(text, zone)


def _zone(found: re.Match[str]) -> str:
    name = found["zone"].strip("\"'").removeprefix(":")
    try:
        zone_named(name)
    except Invalid as error:
        detail = error.detail.removeprefix("timezone: ")
        raise CronError(
            f"{found['name']}: {detail}", field="timezone", start=found.start("zone"), end=found.end()
        ) from None
    return name


def _period(period: str, text: str) -> str:
    try:
        parse_duration(period, field="@every")
    except Invalid as error:
        raise CronError(error.detail, field="every", end=len(text)) from None
    return period


def _called(name: str, inside: str, zone: str | None, text: str) -> Notation:
    if name == "at":
        raise CronError("at(...) is one instant: give it as schedule_time", field="expression", end=len(text))
    if name == "rate":
        found = RATE.fullmatch(inside)
        if found is None or int(found["number"]) == 0:
            raise CronError("rate(...): write it like rate(5 minutes), or use every: 5m", field="every", end=len(text))
        return Notation("", zone, f"{int(found['number'])}{found['unit'][0].lower()}")
    fields = inside.split()
    if len(fields) != 6:
        raise CronError(
            f"cron(...) has the 6 fields of AWS: minute hour day-of-month month day-of-week year, not {len(fields)}; "
            "without cron( and ), 5 fields are a crontab's and 6 begin with a second",
            field="expression",
            end=len(text),
        )
    fields[4] = AWS_WEEKDAY.sub(lambda number: _weekday(number[0], text), fields[4])
    # The year is the seventh field, and the second comes with it; every year needs neither.
    expression = " ".join(fields[:5] if fields[5] in ("*", "?") else ["0", *fields])
    return Notation(expression, zone, is_rewritten=True)


def _weekday(number: str, text: str) -> str:
    """In AWS, 1 is Sunday and 7 is Saturday."""
    if not 1 <= int(number) <= 7:
        raise CronError(
            f"day-of-week: in cron(...), 1 is Sunday and 7 is Saturday, not {number}",
            field="day-of-week",
            end=len(text),
        )
    return WEEKDAYS[int(number) - 1][:3]
