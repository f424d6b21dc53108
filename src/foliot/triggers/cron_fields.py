"""The grammar of cron: from text to sets of numbers and rules for days. Every error names the field and the place.

    [second] minute hour day-of-month month day-of-week [year]

Five fields, six with the second first, seven with a year last as well. Numbers, names (JAN, Monday), ranges, which may
run past midnight or the end of the week, the month or the year (22-4, FRI-MON), steps, lists; `?` is `*`; 7 is Sunday.
`L`, `L-3`, `LW`, `L-1W`, `15W` for days of the month; `5L`, `FRI#L`, `MON#2`, `MON-FRI#1` for days of the week, and
`+FRI` for a day that must fit both day fields. `H`, `H(0-7)`, `H/15` for a number that is stable for a job and spread
over jobs. `@hourly` ... `@yearly`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from foliot.errors import Invalid
from foliot.triggers import cron_hints

MAX_LENGTH = 500
STARS = ("*", "?")


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
    size: int
    """How many different numbers there are: 0 and 7 are both Sunday."""
    names: tuple[str, ...] = ()
    hash_high: int = 0
    """The highest number that H may stand for, where not all exist every month."""
    unit: str = ""
    """Of a period that `every` can express instead."""
    goes_round: bool = False
    """A range may run past its end: past midnight, the end of the week, the month, the year."""

    def reduced(self, number: int) -> int:
        """The number in the field for one that a range counted past its end."""
        return self.low + (number - self.low) % self.size

    def named(self, text: str) -> int | None:
        """The number of a name, written out or cut off after its third letter or later."""
        place = next((place for place, name in enumerate(self.names) if len(text) >= 3 and name.startswith(text)), None)
        return None if place is None else self.low + place


MONTHS = (
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
)
WEEKDAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
SECOND = Field("second", 0, 59, 60, unit="s")
MINUTE = Field("minute", 0, 59, 60, unit="m")
HOUR = Field("hour", 0, 23, 24, unit="h", goes_round=True)
DAY = Field("day-of-month", 1, 31, 31, hash_high=28, unit="d", goes_round=True)
MONTH = Field("month", 1, 12, 12, MONTHS, goes_round=True)
WEEKDAY = Field("day-of-week", 0, 7, 7, WEEKDAYS, hash_high=6, unit="d", goes_round=True)
YEAR = Field("year", 1970, 2199, 230)
FIELDS = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR)

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every_minute": "* * * * *",
}

STEP = re.compile(r"(?P<what>[^/]*)(?:/(?P<step>[0-9]+))?")
HASH = re.compile(r"H(?:\((?P<low>[0-9]{1,2})-(?P<high>[0-9]{1,2})\))?")
LAST_DAY = re.compile(r"L(?:-(?P<before>[0-9]{1,2}))?(?P<workday>W?)")
NEAREST = re.compile(r"(?P<day>[0-9]{1,2})W")
NTH = re.compile(r"(?P<days>[0-9A-Z]+(?:-[0-9A-Z]+)?)#(?P<nth>[0-9]|L)")
LAST_WEEKDAY = re.compile(r"(?P<day>[0-9]|[A-Z]{3,})L")


@dataclass(frozen=True, slots=True)
class Days:
    """Which days of a month, by its two fields."""

    days: frozenset[int]
    last_offsets: frozenset[int]
    """0 for L, 3 for L-3."""
    nearest: frozenset[int]
    """15 for 15W."""
    last_workday_offsets: frozenset[int]
    """0 for LW, 3 for L-3W."""
    weekdays: frozenset[int]
    """0 is Sunday."""
    nth_weekdays: frozenset[tuple[int, int]]
    last_weekdays: frozenset[int]
    needs_both: bool
    """A day must fit both fields: one of them begins with a star, or the day of the week with `+`. Else one of them is
    enough, as in every crontab."""

    @property
    def has_last_workday(self) -> bool:
        return 0 in self.last_workday_offsets


@dataclass(frozen=True, slots=True)
class CronFields:
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    days: Days
    years: tuple[int, ...] | None
    """None is every year."""
    is_elapsed: bool
    """The second, the minute or the hour begins with a star. Such an expression means an interval rather than a time of
    day, so it follows elapsed time when the clocks change, as in Debian's cron."""
    texts: tuple[str, ...]
    """The fields as written, from the second on, aliases resolved."""
    places: tuple[int, ...]
    """Where each of them begins."""
    has_seconds: bool
    """The second was written."""
    refusal: CronError | None
    """Why it is refused from now on. Jobs that were stored with it when it was accepted keep its meaning."""

    @property
    def is_any_hour(self) -> bool:
        hour = self.texts[2]
        return hour.startswith(STARS) and "," not in hour


def parse_fields(expression: str, *, seed: str = "") -> CronFields:
    """`seed` is what H is hashed from: the same for the same job, for ever. Look at `refusal`, or use `parse_cron`."""
    check_length(expression)
    pieces, has_seconds = _split(expression)
    _refuse_year_last(pieces, has_seconds=has_seconds)
    parsed = [
        _FieldParser(field, text, start, seed).parse() for field, (text, start) in zip(FIELDS, pieces, strict=False)
    ]
    seconds, minutes, hours, days, months, weekdays = parsed[:6]
    texts = tuple(text for text, _ in pieces)
    refusals = [_looks_like_aws(expression, texts, has_seconds=has_seconds), *(field.refusal for field in parsed)]
    return CronFields(
        seconds=tuple(sorted(seconds.numbers)),
        minutes=tuple(sorted(minutes.numbers)),
        hours=tuple(sorted(hours.numbers)),
        months=frozenset(months.numbers),
        days=Days(
            days=frozenset(days.numbers),
            last_offsets=frozenset(days.last_offsets),
            nearest=frozenset(days.nearest),
            last_workday_offsets=frozenset(days.last_workday_offsets),
            weekdays=frozenset(weekdays.numbers),
            nth_weekdays=frozenset(weekdays.nth),
            last_weekdays=frozenset(weekdays.last_weekdays),
            needs_both=texts[3].startswith(STARS) or texts[5].startswith((*STARS, "+")),
        ),
        years=None if len(parsed) == 6 or len(parsed[6].numbers) == YEAR.size else tuple(sorted(parsed[6].numbers)),
        is_elapsed=any(text.startswith(STARS) for text in texts[:3]),
        texts=texts,
        places=tuple(start for _, start in pieces),
        has_seconds=has_seconds,
        refusal=next((refusal for refusal in refusals if refusal is not None), None),
    )


def check_length(expression: str) -> None:
    """Comes first: nothing else looks at a text that is longer."""
    if len(expression) > MAX_LENGTH:
        raise CronError(
            f"the expression has {len(expression)} characters, and {MAX_LENGTH} is the most; use ranges and steps, or "
            f"several expressions",
            field="expression",
            start=MAX_LENGTH,
            end=len(expression),
        )


def _split(expression: str) -> tuple[list[tuple[str, int]], bool]:
    """The six or seven fields with their places, and whether the second was given; it is 0 where it is not."""
    text = expression.strip()
    if text.startswith("@"):
        known = ALIASES.get(text.lower())
        if known is None:
            raise CronError(cron_hints.unknown_alias(text, ALIASES), field="expression", end=len(expression))
        expression = known
    # Only of ASCII is it sure that upper case is as long, and no letter of ours that was not before.
    pieces = [
        (found[0].upper() if found[0].isascii() else found[0], found.start())
        for found in re.finditer(r"\S+", expression)
    ]
    if len(pieces) not in (5, 6, 7):
        raise CronError(
            "expected 5 fields (minute hour day-of-month month day-of-week), 6 with a leading second, or 7 with a "
            f"year at the end as well, found "
            f"{len(pieces)}{cron_hints.not_cron(expression, [text for text, _ in pieces])}",
            field="expression",
            end=len(expression),
        )
    has_seconds = len(pieces) > 5
    return (pieces if has_seconds else [("0", 0), *pieces]), has_seconds


def _refuse_year_last(pieces: list[tuple[str, int]], *, has_seconds: bool) -> None:
    """Otherwise the error would be about a field that only stands in the wrong place."""
    text, start = pieces[-1]
    if has_seconds and len(pieces) == 6 and (advice := cron_hints.year_last([text for text, _ in pieces])):
        raise CronError(
            f"{WEEKDAY.name}: {text} is not between {WEEKDAY.low} and {WEEKDAY.high}{advice}",
            field=WEEKDAY.name,
            start=start,
            end=start + len(text),
        )


def _looks_like_aws(expression: str, texts: tuple[str, ...], *, has_seconds: bool) -> CronError | None:
    """Six fields in the order of AWS, with a year and no second. One of its day fields is `?`; here, that is an hour or
    a month."""
    if not has_seconds or len(texts) != 6 or "?" not in (texts[2], texts[4]) or "?" in (texts[3], texts[5]):
        return None
    return CronError(
        "the hour or the month is ?, as in the six fields of AWS, which end with a year; here, six fields begin with "
        f"a second: write cron({' '.join(expression.split())}) for the fields of AWS, or * in place of ?",
        field="expression",
        end=len(expression),
    )


class _FieldParser:
    def __init__(self, field: Field, text: str, start: int, seed: str) -> None:
        self.field = field
        self.text = text
        self.start = start
        self.seed = seed
        self.numbers: set[int] = set()
        self.last_offsets: set[int] = set()
        self.last_workday_offsets: set[int] = set()
        self.nearest: set[int] = set()
        self.nth: set[tuple[int, int]] = set()
        self.last_weekdays: set[int] = set()
        self.refusal: CronError | None = None

    def parse(self) -> _FieldParser:
        text, place = self.text, self.start
        if self.field is WEEKDAY and text.startswith("+"):
            text, place = text[1:], place + 1
        for part in text.split(","):
            self._parse_part(part, place)
            place += len(part) + 1
        return self

    def _parse_part(self, part: str, place: int) -> None:
        if not part:
            raise self._error(cron_hints.empty_part(self.text), part, place)
        if self.field is DAY and self._parse_special_day(part, place):
            return
        if self.field is WEEKDAY and self._parse_special_weekday(part, place):
            return
        found = STEP.fullmatch(part)
        if found is None or not found["what"]:
            raise self._unreadable(part, part, place)
        step = 1 if found["step"] is None else int(found["step"])
        if step < 1:
            raise self._error("a step must be 1 or more", part, place)
        numbers = self._range(found["what"], found["step"] is not None, step, part, place)
        self._add(numbers[::step])

    def _add(self, numbers: Iterable[int]) -> None:
        self.numbers.update(map(self.field.reduced, numbers))

    def _range(self, what: str, has_step: bool, step: int, part: str, place: int) -> range:
        """The numbers that a step goes through; past the end of the field they go on from its beginning."""
        field = self.field
        if what in STARS:
            return self._checked(range(field.low, field.low + field.size), step, part, place)
        if (hashed := HASH.fullmatch(what)) and field is not YEAR:
            return self._hashed(hashed, has_step, step, part, place)
        first, dash, last = what.partition("-")
        low = self._number(first, part, place)
        if dash:
            return self._checked(self._span(low, self._number(last, part, place), part, place), step, part, place)
        if has_step:
            return self._checked(range(low, max(low + 1, field.low + field.size)), step, part, place)
        return range(low, low + 1)

    def _span(self, low: int, high: int, part: str, place: int) -> range:
        field = self.field
        if low > high:
            if not field.goes_round:
                raise self._error(cron_hints.reversed_range(part, low, high, (field.low, field.high)), part, place)
            high += field.size
        return range(low, high + 1)

    def _checked(self, numbers: range, step: int, part: str, place: int) -> range:
        """A step that is longer than all there is to step through names one number, and is meant as a period that cron
        can't express."""
        if step > len(numbers):
            message = cron_hints.long_step(self.field.name, self.field.unit, part, step, self.field.reduced(numbers[0]))
            self.refusal = self.refusal or self._error(message, part, place)
        return numbers

    def _hashed(self, found: re.Match[str], has_step: bool, step: int, part: str, place: int) -> range:
        field = self.field
        low = field.low if found["low"] is None else self._number(found["low"], part, place)
        high = (field.hash_high or field.high) if found["high"] is None else self._number(found["high"], part, place)
        numbers = self._checked(self._span(low, high, part, place), step, part, place)
        digest = hashlib.sha256(f"{self.seed}\0{field.name}".encode("utf-8", "surrogatepass")).digest()
        number = int.from_bytes(digest[:8], "big")
        if has_step:
            return numbers[number % min(step, len(numbers)) :]
        chosen = number % len(numbers)
        return numbers[chosen : chosen + 1]

    def _number(self, text: str, part: str, place: int) -> int:
        field = self.field
        named = field.named(text)
        if named is not None:
            return named
        if not (text.isascii() and text.isdecimal() and len(text) <= 4):
            raise self._unreadable(text, part, place)
        number = int(text)
        if not field.low <= number <= field.high:
            message = (
                f"{number} is not between {field.low} and {field.high}{cron_hints.out_of_range(field.name, number)}"
            )
            raise self._error(message, part, place)
        return number

    def _parse_special_day(self, part: str, place: int) -> bool:
        if part == "WL":
            self.last_workday_offsets.add(0)
        elif found := LAST_DAY.fullmatch(part):
            before = int(found["before"] or 0)
            if before > 30:
                raise self._error(f"no month has a day {before} before its last", part, place)
            (self.last_workday_offsets if found["workday"] else self.last_offsets).add(before)
        elif found := NEAREST.fullmatch(part):
            self.nearest.add(self._number(found["day"], part, place))
        else:
            return False
        return True

    def _parse_special_weekday(self, part: str, place: int) -> bool:
        if part == "L":
            self.numbers.add(6)  # the last day of the week, as in Quartz
        elif found := NTH.fullmatch(part):
            first, dash, last = found["days"].partition("-")
            low = self._number(first, part, place)
            span = self._span(low, self._number(last, part, place) if dash else low, part, place)
            self._parse_nth([self.field.reduced(day) for day in span], found["nth"], part, place)
        elif found := LAST_WEEKDAY.fullmatch(part):
            self.last_weekdays.add(self._number(found["day"], part, place) % 7)
        else:
            return False
        return True

    def _parse_nth(self, weekdays: list[int], nth: str, part: str, place: int) -> None:
        if nth == "L":
            self.last_weekdays.update(weekdays)
        elif 1 <= int(nth) <= 5:
            self.nth.update((weekday, int(nth)) for weekday in weekdays)
        else:
            raise self._error(f"a month has weekdays number 1 to 5, not {nth}; #L is the last", part, place)

    def _unreadable(self, text: str, part: str, place: int) -> CronError:
        hint = cron_hints.unreadable(self.field.name, part, (self.field.low, self.field.high), self.field.names)
        return self._error(f"can't read {text or part!r}{hint}", part, place)

    def _error(self, message: str, part: str, place: int) -> CronError:
        return CronError(
            f"{self.field.name}: {message}", field=self.field.name, start=place, end=place + max(1, len(part))
        )
