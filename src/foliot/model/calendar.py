"""An exclusion calendar as users name it: a shared list of days on which the jobs that refer to it do not fire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.field_rules import Rule, any_of, field_is
from foliot.model.text_patterns import ZONE
from foliot.triggers.calendar import Calendar
from foliot.triggers.zones import zone_named

Weekday = Literal["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
WEEKDAYS: tuple[Weekday, ...] = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MAX_DATES = 5000


class CalendarDays(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The days on which jobs do not fire, in the calendar's own time zone."""

    timezone: Annotated[
        str, Meta(max_length=100, extra_json_schema=ZONE, description="The time zone of these days: an IANA name.")
    ] = "UTC"
    dates: Annotated[tuple[date, ...], Meta(max_length=MAX_DATES)] = ()
    weekdays: Annotated[tuple[Weekday, ...], Meta(max_length=7)] = ()

    RULES: ClassVar[tuple[Rule, ...]] = (
        any_of(field_is("dates", {"minItems": 1}, required=True), field_is("weekdays", {"minItems": 1}, required=True)),
        field_is("weekdays", {"not": {"allOf": [{"contains": {"const": day}} for day in WEEKDAYS]}}),
    )


@dataclass(frozen=True, slots=True)
class NamedCalendar:
    name: str
    version: int
    days: CalendarDays
    created_at: datetime
    updated_at: datetime
    jobs: int = 0
    """How many jobs use it, counted up to a limit."""


@lru_cache(maxsize=1024)
def calendar_of(days: CalendarDays) -> Calendar:
    """Raises `Invalid` for a zone that does not exist, and for a calendar that leaves no day or excludes none."""
    zone = zone_named(days.timezone)
    if not days.dates and not days.weekdays:
        raise Invalid("dates: give dates, weekdays or both: this calendar excludes nothing", field="dates")
    if len(set(days.weekdays)) == len(WEEKDAYS):
        raise Invalid("weekdays: all seven are excluded, so nothing would ever fire", field="weekdays")
    return Calendar(zone, frozenset(days.dates), frozenset(WEEKDAYS.index(day) for day in days.weekdays))
