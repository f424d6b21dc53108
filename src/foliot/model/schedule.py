"""The schedule of a recurring job: when its ticks are due. `catchup.py` and `overlap.py` tell which become runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.model.catchup import Catchup
from foliot.model.overlap import Overlap
from foliot.triggers.base import Trigger, last_before, to_instant
from foliot.triggers.calendar import Calendar, CalendarTrigger, OnExcluded
from foliot.triggers.composite import BoundedTrigger, OnceTrigger, UnionTrigger
from foliot.triggers.cron import parse_cron
from foliot.triggers.cron_fields import CronError
from foliot.triggers.dst import DstFold, DstGap, WallPolicy
from foliot.triggers.durations import parse_duration
from foliot.triggers.interval import IntervalTrigger
from foliot.triggers.notation import read_notation
from foliot.triggers.zones import offset_at, same_wall, zone_named

Neighbours = tuple[int | None, int | None]
MAX_CATCHUP_WINDOW_SECONDS = 31_536_000
MAX_EXPRESSIONS = 20
MAX_TIMES = 1000

Expression = Annotated[str, Meta(max_length=500)]
Expressions = Annotated[tuple[Expression, ...], Meta(min_length=1, max_length=MAX_EXPRESSIONS)]
Times = Annotated[tuple[Annotated[datetime, Meta(tz=True)], ...], Meta(min_length=1, max_length=MAX_TIMES)]


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """`cron`, `every` or `times`; `cron` may name several expressions, and `times` may stand beside either: due
    whenever one of them is.

    `after` names other jobs. A tick then waits for the matching ticks of these jobs; without ticks of its own, the job
    is due when all of them have succeeded.
    """

    cron: Expression | Expressions | None = None
    every: Annotated[str, Meta(max_length=100)] | None = None
    times: Times | None = None
    after: tuple[str, ...] | None = None
    timezone: Annotated[str, Meta(max_length=100)] = "UTC"
    dst_gap: DstGap = "shift"
    dst_fold: DstFold = "first"
    start_at: Annotated[datetime, Meta(tz=True)] | None = None
    end_at: Annotated[datetime, Meta(tz=True)] | None = None
    calendar: Annotated[str, Meta(max_length=200)] | None = None
    on_excluded: OnExcluded = "skip"
    jitter_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0
    overlap: Overlap = "skip"
    catchup: Catchup = "latest"
    catchup_window_seconds: Annotated[int, Meta(ge=0, le=MAX_CATCHUP_WINDOW_SECONDS)] = 86_400
    catchup_max: Annotated[int, Meta(ge=1, le=10_000)] = 100
    grace_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 60

    @property
    def has_ticks(self) -> bool:
        """Whether it is due at instants, and not only after other jobs."""
        return self.cron is not None or self.every is not None or self.times is not None

    @property
    def expressions(self) -> tuple[str, ...]:
        return (self.cron,) if isinstance(self.cron, str) else self.cron or ()


@dataclass(frozen=True, slots=True)
class Timetable:
    """The ticks of a schedule. Ticks on the days that a calendar excludes count, too: each is recorded as excluded."""

    ticks: Trigger
    zone: ZoneInfo
    excluded: Calendar | None = None
    moved: Moved | None = None

    @property
    def fires(self) -> Trigger:
        """The ticks that become runs."""
        return self.ticks if self.excluded is None else CalendarTrigger(self.ticks, self.excluded)

    def first_after(self, now: int, pending: int | None) -> int | None:
        """The first tick of a job that starts or restarts now. `pending` was its next tick, if any.

        Where a calendar moves ticks, a tick of an earlier day may lie ahead. It counts only if it was pending, because
        otherwise it has fired already.
        """
        moved = self.moved
        if moved is None or (
            pending is not None and pending > now and moved.origins.next_after(pending - 1) != pending
        ):
            return self.ticks.next_after(now)
        later = CalendarTrigger(BoundedTrigger(moved.origins, now + 1), moved.calendar, "move")
        return BoundedTrigger(later, moved.start, moved.end).next_after(now)

    def around(self, instant: int) -> Neighbours:
        """The ticks that become runs before and after an instant; one at the instant itself counts as before."""
        after = self.fires.next_after(instant)
        return last_before(self.fires, instant + 1, 1 if after is None else after - instant), after

    def beside(self, tick: int, following: int | None = None) -> Neighbours:
        """The ticks before and after a tick. `following`: the next one, if it is known."""
        after = self.fires.next_after(tick) if following is None else following
        return last_before(self.fires, tick, 1 if after is None else after - tick), after

    def offset_of(self, tick: int | None) -> int | None:
        """The offset of the zone under which a tick was found; see `corrected`."""
        return None if tick is None else offset_at(self.zone, tick)

    def corrected(self, tick: int, offset_before: int | None, now: int) -> int:
        """The same local time under the current rules, for a tick that was found under other rules: by another node, or
        before an update.

        If that time has passed, the tick stays as it was found, because it may have had its run.
        """
        if offset_before is None or self.ticks.is_elapsed or offset_at(self.zone, tick) == offset_before:
            return tick
        found = same_wall(self.zone, tick, offset_before)
        return found if found > now else tick


@dataclass(frozen=True, slots=True)
class Moved:
    """The origin of ticks that a calendar moves."""

    origins: Trigger
    calendar: Calendar
    start: int | None
    end: int | None


def from_cron(cron: str | tuple[str, ...], timezone: str | None, *, field: str = "cron") -> dict[str, Any]:
    """The fields of a schedule that a newly written `cron` stands for, with `timezone` where that is given or the text
    names one.

    `CRON_TZ=Europe/Berlin 0 9 * * *` is an expression and a zone, `@every 5m` a period. Raises `CronError`, with the
    name of the field at fault, for what makes no sense, for what can never fire, and for what would not mean what it
    seems to say.
    """
    texts = (cron,) if isinstance(cron, str) else cron
    fields: dict[str, Any] = {"cron": None}
    expressions: list[str] = []
    for text in texts:
        try:
            notation = read_notation(text)
            if notation.every is not None and len(texts) > 1:
                raise CronError(
                    "a period can't stand beside other expressions; make it a job of its own",
                    field="every",
                    end=len(text),
                )
            zone = _one_zone(notation.zone, fields, timezone, is_first=not expressions, end=len(text))
            if notation.every is None:
                parse_cron(notation.expression, zone_named(zone or "UTC"))
        except CronError as error:
            detail = error.detail if len(texts) == 1 else f"{text[:100]!r}: {error.detail}"
            raise CronError(f"{field}: {detail}", field=field, start=error.start, end=error.end) from None
        fields |= {"timezone": zone} if zone is not None else {}
        fields |= {"every": notation.every} if notation.every is not None else {}
        expressions.append(notation.expression.strip())
    if "every" not in fields:
        fields["cron"] = expressions[0] if isinstance(cron, str) else tuple(expressions)
    return fields


def _one_zone(own: str | None, found: dict[str, Any], timezone: str | None, *, is_first: bool, end: int) -> str | None:
    """The zone of an expression that names its own, or not, beside others and beside the field `timezone`."""
    given = timezone if timezone is not None else found.get("timezone")
    if own is None and (timezone is not None or is_first):
        return given
    if timezone is not None and own != timezone:
        raise CronError(
            f"the expression says {own} and timezone says {timezone}: leave one of them out", field="timezone", end=end
        )
    if not is_first and own != given:
        raise CronError(
            "all expressions of a job are in one zone: give it as timezone, or make several jobs",
            field="timezone",
            end=end,
        )
    return own


@lru_cache(maxsize=65_536)
def timetable_of(schedule: Schedule, seed: str, anchor: int, calendar: Calendar | None) -> Timetable:
    """`seed` is what H is hashed from; `anchor` is where `every` counts from, unless there is a `start_at`."""
    zone = zone_named(schedule.timezone)
    start = None if schedule.start_at is None else to_instant(schedule.start_at)
    end = None if schedule.end_at is None else to_instant(schedule.end_at)
    if start is not None and end is not None and start > end:
        raise Invalid("end_at: is before start_at", field="end_at")
    ticks = _ticks_of(schedule, zone, seed, start if start is not None else anchor)
    moved = None
    if calendar is not None and schedule.on_excluded == "move":
        moved = Moved(ticks, calendar, start, end)
        ticks = CalendarTrigger(ticks, calendar, "move")
    if start is not None or end is not None:
        ticks = BoundedTrigger(ticks, start, end)
    return Timetable(ticks, zone, calendar if moved is None else None, moved)


def _ticks_of(schedule: Schedule, zone: ZoneInfo, seed: str, anchor: int) -> Trigger:
    if schedule.cron is not None and schedule.every is not None:
        raise Invalid("cron: give either cron or every", field="cron")
    dst_gap, dst_fold = schedule.dst_gap, schedule.dst_fold
    expressions = schedule.expressions
    found: list[Trigger] = []
    for text in expressions:
        try:
            found.append(parse_cron(text, zone, seed=seed, dst_gap=dst_gap, dst_fold=dst_fold, is_stored=True))
        except CronError as error:
            if len(expressions) == 1:
                raise
            raise CronError(f"{text!r}: {error.detail}", field=error.field, start=error.start, end=error.end) from None
    if schedule.every is not None:
        found.append(
            IntervalTrigger(parse_duration(schedule.every, field="every"), anchor, WallPolicy(zone, dst_gap, dst_fold))
        )
    found.extend(OnceTrigger(to_instant(time)) for time in schedule.times or ())
    if not found and not schedule.after:
        raise Invalid("cron: give cron, every or times", field="cron")
    return found[0] if len(found) == 1 else UnionTrigger(tuple(found))
