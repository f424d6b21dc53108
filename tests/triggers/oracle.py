"""The oracle for our triggers: slow, simple, and written without them.

It walks every minute (or second) of a window in UTC, asks `zoneinfo` for the local time, checks whether the expression
names that time, and applies the two policies for daylight saving as they are defined. Nothing here steps, jumps or
searches, and nothing is imported from `foliot`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MONTH_NAMES = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAY_NAMES = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
FULL_NAMES = ["JANUARY", "MARCH", "JULY", "SEPTEMBER", "NOVEMBER"]
FULL_WEEKDAY_NAMES = ["SUNDAY", "MONDAY", "WEDNESDAY", "THURSDAY", "SATURDAY"]
ZONE_NAMES = (
    "Australia/Lord_Howe",
    "America/Santiago",
    "Pacific/Apia",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "America/New_York",
    "Europe/London",
    "Europe/Berlin",
    "UTC",
)
ZONES = tuple(ZoneInfo(name) for name in ZONE_NAMES)
POLICIES = [(gap, fold) for gap in ("shift", "skip") for fold in ("first", "last", "both")]
DAY = 86_400


# Fields: one question for each number, "does this part of the field name it?"


def _number(text: str, names: list[str], first: int) -> int:
    return names.index(text[:3]) + first if text[:3] in names else int(text)


def _part_names(part: str, value: int, low: int, high: int, names: list[str]) -> bool:
    """Counts from the beginning of the part to its end, number by number, wrapping around where it has to."""
    what, _, step_text = part.partition("/")
    step = int(step_text or 1)
    if what in ("*", "?"):
        start, end = low, high
    elif "-" in what:
        first, last = what.split("-")
        start, end = _number(first, names, low), _number(last, names, low)
        if names == WEEKDAY_NAMES:
            # 7 is Sunday: at the beginning of a range the first day, at its end the eighth.
            start, end = (0, end % 7) if start == 7 else (start, end)
    else:
        start = _number(what, names, low)
        end = max(start, high) if step_text else start
    here, count = start, 0
    while here != value or count % step:
        if here == end:
            return False
        count += 1
        # Only a range that wraps around is past its end here. The week ends on Saturday unless a range names its eighth
        # day.
        here = low if here == high and end != high + 1 else here + 1
    return True


def _field_names(text: str, value: int, low: int, high: int, names: list[str] | None = None) -> bool:
    return any(_part_names(part, value, low, high, names or []) for part in text.split(","))


def _is_workday(day: date) -> bool:
    return day.weekday() < 5


@lru_cache(maxsize=1000)
def _days_of_month(year: int, month: int) -> list[date]:
    days = [date(year, month, 1) + timedelta(days=n) for n in range(31)]
    return [day for day in days if day.month == month]


def _nearest_workday(of: int, month: list[date]) -> date | None:
    """The workday the fewest days away, within the month. A Saturday is one day from Friday, a Sunday one from
    Monday."""
    if of > len(month):
        return None
    return min((day for day in month if _is_workday(day)), key=lambda day: abs(day.day - of))


def _date_is_named(text: str, day: date) -> bool:
    month = _days_of_month(day.year, day.month)
    for part in text.split(","):
        if part in ("LW", "WL"):
            named = day == max(other for other in month if _is_workday(other))
        elif part.startswith("L") and part.endswith("W"):
            before = len(month) - int(part[2:-1])
            named = before >= 1 and day == _nearest_workday(before, month)
        elif part.startswith("L"):
            named = day.day == len(month) - int(part[2:] or 0)
        elif part.endswith("W"):
            named = day == _nearest_workday(int(part[:-1]), month)
        else:
            named = _part_names(part, day.day, 1, 31, [])
        if named:
            return True
    return False


def _weekday_is_named(text: str, day: date) -> bool:
    month = _days_of_month(day.year, day.month)
    # Sunday is 0 as well as 7.
    numbers = {day.isoweekday(), day.isoweekday() % 7}
    same = [other for other in month if other.weekday() == day.weekday()]
    for part in text.removeprefix("+").split(","):
        if part == "L":
            named = day.isoweekday() == 6
        elif part.endswith("L") and "#" not in part:
            named = _number(part[:-1], WEEKDAY_NAMES, 0) in numbers and day == same[-1]
        elif "#" in part:
            weekday, nth = part.split("#")
            is_nth = day == same[-1] if nth == "L" else same.index(day) + 1 == int(nth)
            named = is_nth and any(_part_names(weekday, number, 0, 6, WEEKDAY_NAMES) for number in numbers)
        else:
            named = any(_part_names(part, number, 0, 6, WEEKDAY_NAMES) for number in numbers)
        if named:
            return True
    return False


@dataclass(frozen=True)
class Expression:
    second: str
    minute: str
    hour: str
    day: str
    month: str
    weekday: str
    year: str = "*"

    @classmethod
    def read(cls, text: str) -> Expression:
        fields = text.upper().split()
        return cls(*(fields if len(fields) >= 6 else ["0", *fields]))

    @property
    def is_elapsed(self) -> bool:
        """cron(8) of Debian: a job with a star in the hour or minute follows the new time at once; here, in the second
        as well."""
        return self.hour[0] in "*?" or self.minute[0] in "*?" or self.second[0] in "*?"

    def names_day(self, day: date) -> bool:
        if not _field_names(self.month, day.month, 1, 12, MONTH_NAMES) or not _field_names(
            self.year, day.year, 1970, 2199
        ):
            return False
        by_date, by_weekday = _date_is_named(self.day, day), _weekday_is_named(self.weekday, day)
        if self.day[0] in "*?" or self.weekday[0] in "*?+":
            return by_date and by_weekday
        return by_date or by_weekday

    def times(self) -> tuple[set[int], set[int], set[int]]:
        hours = {hour for hour in range(24) if _field_names(self.hour, hour, 0, 23)}
        minutes = {minute for minute in range(60) if _field_names(self.minute, minute, 0, 59)}
        return hours, minutes, {second for second in range(60) if _field_names(self.second, second, 0, 59)}


# Windows: every instant of a period, with its local time


@dataclass(frozen=True, eq=False)
class Window:
    """[start, end), walked with a margin on both sides, so that a fold or a gap at the edge is seen whole."""

    zone: ZoneInfo
    start: int
    end: int
    step: int
    instants: tuple[tuple[int, datetime], ...]
    """Every instant and its wall time."""
    gaps: tuple[tuple[int, tuple[datetime, ...]], ...]
    """The first instant after each gap, and the wall times that the gap left out."""

    def __repr__(self) -> str:
        return (
            f"<{self.zone.key} {datetime.fromtimestamp(self.start, UTC):%F %R} to "
            f"{datetime.fromtimestamp(self.end, UTC):%F %R} UTC>"
        )


def window(zone: ZoneInfo, start: int, end: int, *, step: int = 60, margin: int = 3 * 3600) -> Window:
    pause = timedelta(seconds=step)
    instants = []
    gaps = []
    before: datetime | None = None
    for instant in range(start - margin, end + margin, step):
        wall = datetime.fromtimestamp(instant, zone).replace(tzinfo=None, fold=0)
        instants.append((instant, wall))
        if before is not None and wall > before + pause:
            left_out = []
            missing = before + pause
            while missing < wall:
                left_out.append(missing)
                missing += pause
            gaps.append((instant, tuple(left_out)))
        before = wall
    return Window(zone, start, end, step, tuple(instants), tuple(gaps))


@lru_cache(maxsize=1)
def transitions(first_year: int = 2024, last_year: int = 2031) -> tuple[tuple[ZoneInfo, int], ...]:
    """Every change of an offset in those years, found at every sixth hour, and then at every half hour."""
    found = []
    for zone in ZONES:
        for start in range(instant_of(first_year), instant_of(last_year + 1), 6 * 3600):
            if _offset_at(start, zone) != _offset_at(start + 6 * 3600, zone):
                half_hours = range(start + 1800, start + 6 * 3600 + 1, 1800)
                found += [
                    (zone, instant)
                    for instant in half_hours
                    if _offset_at(instant - 1800, zone) != _offset_at(instant, zone)
                ]
    return tuple(found)


def _offset_at(instant: int, zone: ZoneInfo) -> timedelta | None:
    return datetime.fromtimestamp(instant, zone).utcoffset()


# The judgement


def named_walls(text: str, walls: Iterable[datetime]) -> Callable[[datetime], bool]:
    """Whether an expression names one of these local times."""
    expression = Expression.read(text)
    hours, minutes, seconds = expression.times()
    dates = {wall.date() for wall in walls}
    days = {day for day in dates if expression.names_day(day)}
    return lambda wall: wall.minute in minutes and wall.hour in hours and wall.second in seconds and wall.date() in days


def fires_by_policy(text: str, seen: Window) -> dict[tuple[str, str], list[int]]:
    """Every instant of the window at which the expression fires, for each of the six pairs of policies."""
    is_named = named_walls(
        text, [*(wall for _, wall in seen.instants), *(wall for _, left_out in seen.gaps for wall in left_out)]
    )
    matches = [(instant, wall) for instant, wall in seen.instants if is_named(wall)]
    every = {instant for instant, _ in matches}
    comings: dict[datetime, list[int]] = {}
    for instant, wall in matches:
        comings.setdefault(wall, []).append(instant)
    by_fold = {
        "first": {min(instants) for instants in comings.values()},
        "last": {max(instants) for instants in comings.values()},
        "both": every,
    }
    shifted = {instant for instant, left_out in seen.gaps if any(is_named(wall) for wall in left_out)}
    is_elapsed = Expression.read(text).is_elapsed
    found = {}
    for gap, fold in POLICIES:
        instants = every if is_elapsed else by_fold[fold] | (shifted if gap == "shift" else set())
        found[gap, fold] = sorted(instant for instant in instants if seen.start <= instant < seen.end)
    return found


def fires(text: str, seen: Window, dst_gap: str = "shift", dst_fold: str = "first") -> list[int]:
    return fires_by_policy(text, seen)[dst_gap, dst_fold]


def days_named(text: str, first_year: int = 2024, last_year: int = 2031) -> Iterator[date]:
    """Every day of those years that the day fields and the month name."""
    expression = Expression.read(text)
    day = date(first_year, 1, 1)
    while day.year <= last_year:
        if expression.names_day(day):
            yield day
        day += timedelta(days=1)


def instant_at(wall: datetime, zone: ZoneInfo) -> int:
    """The first instant with this local time; if it never occurs, the first instant after the gap."""
    found = int(wall.replace(tzinfo=UTC).timestamp()) + 26 * 3600
    # Searches every half hour of two days, then every minute of that one, then every second, for the first instant
    # whose local time is this or later.
    for length, step in ((52 * 3600, 1800), (1800, 60), (60, 1)):
        found = next(instant for instant in range(found - length, found + 1, step) if _wall_at(instant, zone) >= wall)
    return found


def _wall_at(instant: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(instant, zone).replace(tzinfo=None)


def instant_of(
    year: int, month: int = 1, day: int = 1, hour: int = 0, minute: int = 0, second: int = 0, zone: str = "UTC"
) -> int:
    """The first instant of an existing local time."""
    return int(datetime(year, month, day, hour, minute, second, tzinfo=ZoneInfo(zone)).timestamp())


# Random expressions


def random_part(chance: random.Random, low: int, high: int) -> str:
    """A number, a range, a range that wraps around where a minute may not, or a step no longer than its range."""
    first = chance.randint(low, high)
    last = chance.randint(first if high == 59 else low, high)
    size = high - low + 1

    def step(most: int) -> int:
        return min(most, chance.choice([1, 2, 3, 5, 7, 10, 15, 20, 30]))

    span = (last - first) % size + 1
    stepped = [f"{first}-{last}/{step(span)}", f"{first}/{step(high - first + 1)}", f"*/{step(size)}"]
    return chance.choice([f"{first}", f"{first}", f"{first}-{last}", *stepped])


def random_field(chance: random.Random, low: int, high: int, star: float) -> str:
    if chance.random() < star:
        return "*"
    return ",".join(random_part(chance, low, high) for _ in range(chance.choice([1, 1, 1, 2, 3, 4])))


def random_date_field(chance: random.Random) -> str:
    """The day of the month, with all the forms that only it has."""
    if chance.random() < 0.5:
        return random_field(chance, 1, 31, 0.5)
    parts = ["L", f"L-{chance.randint(1, 27)}", "LW", f"{chance.randint(1, 31)}W", str(chance.randint(1, 31)), "?"]
    parts.append(f"L-{chance.randint(1, 27)}W")
    return ",".join(chance.sample(parts, k=chance.choice([1, 1, 1, 2])))


def random_weekday_field(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return random_field(chance, 0, 6, 0.5)
    name = chance.choice([*WEEKDAY_NAMES, *FULL_WEEKDAY_NAMES])
    first, last = chance.choices(WEEKDAY_NAMES, k=2)
    parts = [
        name,
        f"{first}-{last}",
        f"{last}-SUN",
        f"{name}L",
        f"{chance.randint(0, 7)}L",
        f"{name}#{chance.randint(1, 5)}",
        "L",
        "?",
    ]
    parts += [
        f"{name}#L",
        f"{first}-{last}#{chance.randint(1, 5)}",
        f"{first}-{last}#L",
        f"7-{chance.randint(0, 7)}",
        "7",
        "1-7/2",
    ]
    chosen = ",".join(chance.sample(parts, k=chance.choice([1, 1, 1, 2])))
    return chosen if chance.random() < 0.8 else f"+{chosen}"


def random_month_field(chance: random.Random) -> str:
    return (
        chance.choice([*MONTH_NAMES, *FULL_NAMES, "NOV-MAR"])
        if chance.random() < 0.2
        else random_field(chance, 1, 12, 0.7)
    )


def random_expression(chance: random.Random) -> str:
    """Any five fields."""
    minute, hour = random_field(chance, 0, 59, 0.15), random_field(chance, 0, 23, 0.3)
    return f"{minute} {hour} {random_date_field(chance)} {random_month_field(chance)} {random_weekday_field(chance)}"


def random_night_expression(chance: random.Random) -> str:
    """An expression that fires on most days, in the hours in which clocks change."""
    minute = random_field(chance, 0, 59, 0.1)
    usual = [
        "*",
        "*/2",
        "*/3",
        "?",
        "0",
        "1",
        "2",
        "3",
        "23",
        "0-3",
        "1,2",
        "2-3",
        "22-23",
        "0,23",
        "1-4/2",
        "23,0-2",
        "*,2",
    ]
    hour = chance.choice([*usual, random_field(chance, 0, 23, 0)])
    day = chance.choice(["*", "*", "*", "*", "*/2", "L", "1-15", random_date_field(chance)])
    weekday = chance.choice(["*", "*", "*", "*", "SUN", "FRI-SUN", "SAT,SUN", random_weekday_field(chance)])
    return f"{minute} {hour} {day} * {weekday}"


def random_crontab_part(chance: random.Random, low: int, high: int) -> str:
    first = chance.randint(low, high - 1)
    last = chance.randint(first + 1, high)
    step = chance.choice([2, 3, 5, 7, 10, 15, 20])
    stepped = [f"{first}-{last}/{min(step, last - first + 1)}", f"*/{min(step, high - low + 1)}"]
    return chance.choice([f"{first}", f"{last}", f"{first}-{last}", *stepped])


def random_crontab_field(chance: random.Random, low: int, high: int, star: float) -> str:
    if chance.random() < star:
        return "*"
    return ",".join(random_crontab_part(chance, low, high) for _ in range(chance.choice([1, 1, 2, 3])))


def random_crontab_expression(chance: random.Random) -> str:
    """Only forms that crontab(5) describes: no `5/10`, and no range of one number."""
    fields = [(0, 59, 0.15), (0, 23, 0.3), (1, 31, 0.5), (1, 12, 0.6), (0, 6, 0.5)]
    return " ".join(random_crontab_field(chance, *field) for field in fields)
