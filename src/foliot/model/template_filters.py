"""The filters of placeholders: `date`, `format "%Y-%m"`, `add "-1d"` and so on. Each is a plain function of a value and
at most one argument.

Filters of times take a time, or text that is an ISO 8601 time. A day added is a day on the calendar of the time's zone,
however long it is; hours, minutes and seconds are elapsed time.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from foliot.errors import Invalid
from foliot.triggers.zones import zone_named

NOTHING: Final = object()
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
# English names, whatever the locale of the worker is.
DIRECTIVES: dict[str, Callable[[datetime], str]] = {
    "Y": lambda at: f"{at.year:04}",
    "y": lambda at: f"{at.year % 100:02}",
    "m": lambda at: f"{at.month:02}",
    "d": lambda at: f"{at.day:02}",
    "H": lambda at: f"{at.hour:02}",
    "I": lambda at: f"{at.hour % 12 or 12:02}",
    "p": lambda at: "AM" if at.hour < 12 else "PM",
    "M": lambda at: f"{at.minute:02}",
    "S": lambda at: f"{at.second:02}",
    "j": lambda at: f"{at.timetuple().tm_yday:03}",
    "G": lambda at: f"{at.isocalendar().year:04}",
    "V": lambda at: f"{at.isocalendar().week:02}",
    "u": lambda at: str(at.isoweekday()),
    "a": lambda at: DAYS[at.weekday()][:3],
    "A": lambda at: DAYS[at.weekday()],
    "b": lambda at: MONTHS[at.month - 1][:3],
    "B": lambda at: MONTHS[at.month - 1],
    "z": lambda at: at.strftime("%z"),
    "Z": lambda at: at.tzname() or "",
    "%": lambda _: "%",
}
DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
SPAN = re.compile(r"[+-]?(?:[0-9]{1,6}[wdhms]){1,5}")
SPAN_PART = re.compile(r"([0-9]{1,6})([wdhms])")
ELAPSED = {"h": "hours", "m": "minutes", "s": "seconds"}


class FilterError(Exception):
    """The value or the argument can't be used."""


@dataclass(frozen=True, slots=True)
class KnownFilter:
    apply: Callable[[Any, str], Any]
    """Gets the value and the argument."""
    example: str
    takes_argument: bool = False
    needs_time: bool = False
    gives_time: bool = False
    check: Callable[[str], object] = lambda _: None
    """Raises `FilterError` for an argument that can't be used."""


def text_of(value: Any) -> str:
    """A value as it stands in a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return msgspec.json.encode(value).decode()


def time_of(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass
    raise FilterError(f"{text_of(value)[:100]!r} is not an ISO 8601 time")


def aware(value: Any) -> datetime:
    found = time_of(value)
    if found.tzinfo is None:
        raise FilterError(f"{found.isoformat()!r} has no offset")
    return found


def formatted(value: Any, pattern: str) -> str:
    at = time_of(value)
    return DIRECTIVE.sub(lambda found: DIRECTIVES[found[1]](at), pattern)


def check_pattern(pattern: str) -> None:
    for found in DIRECTIVE.finditer(pattern):
        if found[1] not in DIRECTIVES:
            raise FilterError(f"there is no {found[0]!r}; there are {' '.join(f'%{name}' for name in DIRECTIVES)}")


def check_span(span: str) -> None:
    if not SPAN.fullmatch(span):
        raise FilterError(f"can't read {span[:100]!r}; write it like 1d, -1h30m or 2w")


def added(value: Any, span: str) -> datetime:
    check_span(span)
    sign = -1 if span.startswith("-") else 1
    found = time_of(value)
    try:
        for number, unit in SPAN_PART.findall(span):
            amount = sign * int(number)
            if unit in "wd":
                found += timedelta(days=amount * (7 if unit == "w" else 1))
            elif found.tzinfo is None:
                found += timedelta(**{ELAPSED[unit]: amount})
            else:
                found = (found.astimezone(UTC) + timedelta(**{ELAPSED[unit]: amount})).astimezone(found.tzinfo)
    except OverflowError:
        raise FilterError("the time is out of range") from None
    return found


def in_zone(value: Any, zone: str) -> datetime:
    check_zone(zone)
    return aware(value).astimezone(zone_named(zone))


def check_zone(zone: str) -> None:
    try:
        zone_named(zone)
    except Invalid as error:
        raise FilterError(error.detail) from None


def quoted(value: Any, _: str) -> str:
    return shlex.quote(text_of(value))


def as_json(value: Any, _: str) -> str:
    return msgspec.json.encode(text_of(value) if isinstance(value, datetime) else value).decode()


def or_default(value: Any, fallback: str) -> Any:
    return fallback if value is None else value


FILTERS: dict[str, KnownFilter] = {
    "date": KnownFilter(lambda value, _: formatted(value, "%Y-%m-%d"), "scheduled_for | date", needs_time=True),
    "time": KnownFilter(lambda value, _: formatted(value, "%H:%M:%S"), "scheduled_for | time", needs_time=True),
    "iso": KnownFilter(lambda value, _: text_of(time_of(value)), "scheduled_for | iso", needs_time=True),
    "epoch": KnownFilter(lambda value, _: int(aware(value).timestamp()), "scheduled_for | epoch", needs_time=True),
    "format": KnownFilter(
        formatted, 'scheduled_for | format "%Y/%m"', takes_argument=True, needs_time=True, check=check_pattern
    ),
    "add": KnownFilter(
        added, 'scheduled_for | add "-1d"', takes_argument=True, needs_time=True, gives_time=True, check=check_span
    ),
    "in_zone": KnownFilter(
        in_zone,
        'scheduled_for | in_zone "Europe/Berlin"',
        takes_argument=True,
        needs_time=True,
        gives_time=True,
        check=check_zone,
    ),
    "default": KnownFilter(or_default, 'previous_tick | default "1970-01-01"', takes_argument=True),
    "json": KnownFilter(as_json, "payload.customer | json"),
    "quote": KnownFilter(quoted, "payload.customer | quote"),
}
