"""The grammar of cron: from text to sets of numbers and rules for days. Every error names the field and the place.

    [second] minute hour day-of-month month day-of-week

Numbers, names (JAN, MON), ranges, steps, lists; `?` is `*`; 7 is Sunday; `L`, `L-3`, `LW`, `15W` for days of the month; `5L` and `MON#2`
for days of the week; `H`, `H(0-7)`, `H/15` for a number that is stable for a job and spread over jobs; `@hourly` ... `@yearly`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from foliot.errors import Invalid

MAX_LENGTH = 500


class CronError(Invalid):
    """An expression that is not cron, or that can never fire. `start` and `end` are the place in the expression."""

    code = "invalid_cron"

    def __init__(self, detail: str, *, field: str, start: int = 0, end: int = 0) -> None:
        super().__init__(detail, field=field)
        self.start = start
        self.end = end


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    hash_high: int = 0
    """The highest number that H may stand for, where not all exist every month."""


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day-of-month", 1, 31, hash_high=28)
MONTH = Field("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
WEEKDAY = Field("day-of-week", 0, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), hash_high=6)
FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

STEP = re.compile(r"(?P<what>[^/]*)(?:/(?P<step>[0-9]{1,4}))?")
HASH = re.compile(r"H(?:\((?P<low>[0-9]{1,2})-(?P<high>[0-9]{1,2})\))?")
LAST_DAY = re.compile(r"L(?:-(?P<before>[0-9]{1,2}))?")
NEAREST = re.compile(r"(?P<day>[0-9]{1,2})W")
NTH = re.compile(r"(?P<day>[0-9A-Z]{1,3})#(?P<nth>[0-9])")
LAST_WEEKDAY = re.compile(r"(?P<day>[0-9]|[A-Z]{3})L")


@dataclass(frozen=True, slots=True)
class Days:
    """Which days of a month, by its two fields."""

    days: frozenset[int]
    last_offsets: frozenset[int]
    """0 for L, 3 for L-3."""
    nearest: frozenset[int]
    """15 for 15W."""
    has_last_workday: bool
    weekdays: frozenset[int]
    """0 is Sunday."""
    nth_weekdays: frozenset[tuple[int, int]]
    last_weekdays: frozenset[int]
    needs_both: bool
    """One of the two fields begins with a star: then a day must fit both. Else one of them is enough, as in every crontab."""


@dataclass(frozen=True, slots=True)
class CronFields:
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    days: Days
    is_elapsed: bool
    """The hour is `*` or `*/n`: such an expression means "every so often" rather than "at that time"."""
    texts: tuple[str, ...]
    """The six fields as written, aliases resolved."""
    places: tuple[int, ...]
    """Where each of them begins."""


def parse_fields(expression: str, *, seed: str = "") -> CronFields:
    """`seed` is what H is hashed from: the same for the same job, for ever."""
    if len(expression) > MAX_LENGTH:
        raise CronError(f"the expression is longer than {MAX_LENGTH} characters", field="expression", start=MAX_LENGTH, end=len(expression))
    pieces = _split(expression)
    parsed = [_FieldParser(field, text, start, seed).parse() for field, (text, start) in zip(FIELDS, pieces, strict=True)]
    seconds, minutes, hours, days, months, weekdays = parsed
    texts = tuple(text for text, _ in pieces)
    return CronFields(
        seconds=tuple(sorted(seconds.numbers)),
        minutes=tuple(sorted(minutes.numbers)),
        hours=tuple(sorted(hours.numbers)),
        months=frozenset(months.numbers),
        days=Days(
            days=frozenset(days.numbers),
            last_offsets=frozenset(days.last_offsets),
            nearest=frozenset(days.nearest),
            has_last_workday=days.has_last_workday,
            weekdays=frozenset(number % 7 for number in weekdays.numbers),
            nth_weekdays=frozenset(weekdays.nth),
            last_weekdays=frozenset(weekdays.last_offsets),
            needs_both=texts[3].startswith(("*", "?")) or texts[5].startswith(("*", "?")),
        ),
        is_elapsed=texts[2].startswith(("*", "?")) and "," not in texts[2],
        texts=texts,
        places=tuple(start for _, start in pieces),
    )


def _split(expression: str) -> list[tuple[str, int]]:
    """The six fields with their places; the second is 0 where it is not given."""
    text = expression.strip()
    if text.startswith("@"):
        known = ALIASES.get(text.lower())
        if known is None:
            hint = "; @reboot has no meaning for a scheduler of many machines" if text.lower() == "@reboot" else ""
            raise CronError(f"there is no alias {text!r}: {', '.join(sorted(ALIASES))}{hint}", field="expression", end=len(expression))
        text = expression = known
    # Only of ASCII is it sure that upper case is as long, and no letter of ours that was not before.
    pieces = [(found[0].upper() if found[0].isascii() else found[0], found.start()) for found in re.finditer(r"\S+", expression)]
    if len(pieces) not in (5, 6):
        raise CronError(
            f"expected 5 fields (minute hour day-of-month month day-of-week), or 6 with a leading second, found {len(pieces)}",
            field="expression",
            end=len(expression),
        )
    return pieces if len(pieces) == 6 else [("0", 0), *pieces]


class _FieldParser:
    def __init__(self, field: Field, text: str, start: int, seed: str) -> None:
        self.field = field
        self.text = text
        self.start = start
        self.seed = seed
        self.numbers: set[int] = set()
        self.last_offsets: set[int] = set()
        self.nearest: set[int] = set()
        self.nth: set[tuple[int, int]] = set()
        self.has_last_workday = False

    def parse(self) -> _FieldParser:
        place = self.start
        for part in self.text.split(","):
            self._parse_part(part, place)
            place += len(part) + 1
        return self

    def _parse_part(self, part: str, place: int) -> None:
        if self.field is DAY and self._parse_special_day(part, place):
            return
        if self.field is WEEKDAY and self._parse_special_weekday(part, place):
            return
        found = STEP.fullmatch(part)
        if found is None or not found["what"]:
            raise self._error(f"can't read {part!r}", part, place)
        step = 1 if found["step"] is None else int(found["step"])
        if step < 1:
            raise self._error("a step must be 1 or more", part, place)
        low, high = self._range(found["what"], found["step"] is not None, step, part, place)
        self.numbers.update(range(low, high + 1, step))

    def _range(self, what: str, has_step: bool, step: int, part: str, place: int) -> tuple[int, int]:
        field = self.field
        if what in ("*", "?"):
            return field.low, (6 if field is WEEKDAY else field.high)
        if hashed := HASH.fullmatch(what):
            return self._hashed(hashed, has_step, step, part, place)
        first, dash, last = what.partition("-")
        low = self._number(first, part, place)
        if not dash:
            return low, (max(low, 6 if field is WEEKDAY else field.high) if has_step else low)
        high = self._number(last, part, place)
        if field is WEEKDAY and high == 0 and low > 0:
            high = 7  # FRI-SUN
        if low > high:
            raise self._error(f"the range {what!r} ends before it begins", part, place)
        return low, high

    def _hashed(self, found: re.Match[str], has_step: bool, step: int, part: str, place: int) -> tuple[int, int]:
        field = self.field
        low = field.low if found["low"] is None else self._number(found["low"], part, place)
        high = (field.hash_high or field.high) if found["high"] is None else self._number(found["high"], part, place)
        if low > high:
            raise self._error(f"the range of {part!r} ends before it begins", part, place)
        digest = hashlib.sha256(f"{self.seed}\0{field.name}".encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest[:8], "big")
        if has_step:
            return low + number % min(step, high - low + 1), high
        chosen = low + number % (high - low + 1)
        return chosen, chosen

    def _number(self, text: str, part: str, place: int) -> int:
        field = self.field
        if text in field.names:
            return field.names.index(text) + (field.low if field is MONTH else 0)
        if not (text.isascii() and text.isdecimal() and len(text) <= 4):
            raise self._error(f"can't read {text!r}" if text else f"can't read {part!r}", part, place)
        number = int(text)
        if not field.low <= number <= field.high:
            raise self._error(f"{number} is not between {field.low} and {field.high}", part, place)
        return number

    def _parse_special_day(self, part: str, place: int) -> bool:
        if part in ("LW", "WL"):
            self.has_last_workday = True
        elif found := LAST_DAY.fullmatch(part):
            before = int(found["before"] or 0)
            if before > 30:
                raise self._error(f"no month has a day {before} before its last", part, place)
            self.last_offsets.add(before)
        elif found := NEAREST.fullmatch(part):
            self.nearest.add(self._number(found["day"], part, place))
        else:
            return False
        return True

    def _parse_special_weekday(self, part: str, place: int) -> bool:
        if part == "L":
            self.numbers.add(6)  # the last day of the week, as in Quartz
        elif found := NTH.fullmatch(part):
            nth = int(found["nth"])
            if not 1 <= nth <= 5:
                raise self._error(f"a month has weekdays number 1 to 5, not {nth}", part, place)
            self.nth.add((self._number(found["day"], part, place) % 7, nth))
        elif found := LAST_WEEKDAY.fullmatch(part):
            self.last_offsets.add(self._number(found["day"], part, place) % 7)
        else:
            return False
        return True

    def _error(self, message: str, part: str, place: int) -> CronError:
        return CronError(f"{self.field.name}: {message}", field=self.field.name, start=place, end=place + max(1, len(part)))
