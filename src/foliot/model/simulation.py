"""A schedule tried out before it is saved: its next ticks, a year of days, the nights when clocks change, and how it
would have gone with the runs of the past."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import msgspec

from foliot.model.job import DstFlag, RecurringJob, dst_flag, fire_of
from foliot.model.schedule import Timetable
from foliot.triggers.base import DAY_SECONDS, LATEST, to_datetime
from foliot.triggers.zones import next_transition, offset_at

YEAR_DAYS = 366
# The ticks that are walked to count the days of a year, and to replay the past.
WALKED_MAX, REPLAYED_MAX = 12_000, 5_000
NIGHT_SECONDS = 3 * 3600
NIGHT_TICKS_MAX = 24
SKIPPING = ("skip",)

Mark = Literal["excluded", "moved"]


class PreviewTick(msgspec.Struct, frozen=True):
    """A tick ahead."""

    at: datetime
    """In the zone of the schedule."""
    fires_at: datetime | None
    """With its jitter. Null where it makes no run."""
    dst: DstFlag | None
    mark: Mark | None
    """excluded: the calendar excludes the day. moved: the calendar put it off to this day."""


class OddNight(msgspec.Struct, frozen=True):
    """A night when the clocks change, with the ticks of three hours before and after."""

    at: datetime
    kind: Literal["gap", "fold"]
    """gap: clocks go forward, and times are missing. fold: they go back, and times come twice."""
    minutes: int
    ticks: list[PreviewTick]
    more: bool


class DayCount(msgspec.Struct, frozen=True):
    date: str
    """The day in the zone of the schedule."""
    count: int
    excluded: int
    """The ticks that the calendar excludes."""
    is_estimate: bool
    """Not counted one by one: as many as on the last day before that has ticks."""


class PastReplay(msgspec.Struct, frozen=True):
    """The last days with this schedule, and with the durations of the job's real runs."""

    since: datetime
    ticks: int
    runs: int
    overlaps: int
    """Ticks at which the previous run would still have been running."""
    longest_seconds: float
    median_seconds: float
    more: bool
    """There are more ticks: those of the last days are counted."""


@dataclass(frozen=True, slots=True)
class PastRun:
    started: float
    seconds: float


def next_ticks(job: RecurringJob, now: int, count: int) -> list[PreviewTick]:
    timetable, found = job.timetable, list[PreviewTick]()
    tick = timetable.ticks.next_after(now)
    fires = 0
    while tick is not None and len(found) < 2 * count and fires < count:
        shown = preview_tick(job, timetable, tick)
        found.append(shown)
        fires += shown.fires_at is not None
        tick = timetable.ticks.next_after(tick)
    return found


def preview_tick(job: RecurringJob, timetable: Timetable, tick: int) -> PreviewTick:
    mark: Mark | None = None
    if timetable.excluded is not None and timetable.excluded.excludes_instant(tick):
        mark = "excluded"
    elif timetable.moved is not None and timetable.moved.origins.next_after(tick - 1) != tick:
        mark = "moved"
    fires_at = None if mark == "excluded" else to_datetime(fire_of(job.schedule, job.id, tick))
    return PreviewTick(
        to_datetime(tick).astimezone(timetable.zone), fires_at, None if mark == "moved" else dst_flag(job, tick), mark
    )


def odd_nights(job: RecurringJob, now: int) -> list[OddNight]:
    """The clock changes of a year from now."""
    timetable, found = job.timetable, list[OddNight]()
    zone, until = timetable.zone, min(now + YEAR_DAYS * DAY_SECONDS, LATEST)
    transition = next_transition(zone, now, until)
    while transition is not None and len(found) < 4:
        begin, end = transition.instant - NIGHT_SECONDS, transition.instant + NIGHT_SECONDS
        ticks = list[PreviewTick]()
        tick = timetable.ticks.next_after(begin - 1)
        while tick is not None and tick < end and len(ticks) < NIGHT_TICKS_MAX:
            ticks.append(preview_tick(job, timetable, tick))
            tick = timetable.ticks.next_after(tick)
        if transition.before != transition.after:
            found.append(
                OddNight(
                    to_datetime(transition.instant).astimezone(zone),
                    "gap" if transition.is_gap else "fold",
                    abs(transition.after - transition.before) // 60,
                    ticks,
                    tick is not None and tick < end,
                )
            )
        transition = next_transition(zone, transition.instant, until)
    return found


def year_of_days(timetable: Timetable, now: int) -> list[DayCount]:
    """Counts the ticks of each day of a year from now, as far as `WALKED_MAX` ticks go; then days count like the last
    one that was counted, if they have any tick."""
    zone, left, usual = timetable.zone, WALKED_MAX, 0
    today = (now + offset_at(zone, now)) // DAY_SECONDS
    days = list[DayCount]()
    for day in range(today, today + YEAR_DAYS):
        begin, end = _start_of(timetable, day), _start_of(timetable, day + 1)
        date = to_datetime(day * DAY_SECONDS).date().isoformat()
        tick = timetable.ticks.next_after(max(begin, now if day == today else begin) - 1)
        if tick is None or tick >= end:
            days.append(DayCount(date, 0, 0, is_estimate=False))
            continue
        if left <= 0:
            excluded = timetable.excluded is not None and timetable.excluded.excludes_instant(tick)
            days.append(DayCount(date, 0 if excluded else usual, usual if excluded else 0, is_estimate=True))
            continue
        first, walked, excluded_count = max(begin, now if day == today else begin), 0, 0
        while tick is not None and tick < end and walked < WALKED_MAX:
            excluded_count += timetable.excluded is not None and timetable.excluded.excludes_instant(tick)
            walked, last = walked + 1, tick
            tick = timetable.ticks.next_after(tick)
        left -= walked
        is_cut = tick is not None and tick < end
        # Assumes that the rest of the day is like its beginning.
        share = (end - first) / (last + 1 - first) if is_cut else 1.0
        count = round(walked * share)
        usual = round(count * (end - begin) / (end - first))
        excluded_count = count if excluded_count == walked else excluded_count
        days.append(DayCount(date, count - excluded_count, excluded_count, is_estimate=is_cut))
    return days


def fires_per_week(days: Sequence[DayCount]) -> float:
    """The average of the next four whole weeks."""
    return sum(day.count for day in days[1:29]) / 4


def replay(job: RecurringJob, past: Sequence[PastRun], since: int, now: int) -> PastReplay | None:
    """None if no run of the job is known. Each tick takes as long as the real run nearest to it."""
    if not past:
        return None
    runs = sorted(past, key=lambda run: run.started)
    starts, lengths = [run.started for run in runs], sorted(run.seconds for run in runs)
    fires = job.timetable.fires
    ticks = list[int]()
    tick = fires.next_after(since - 1)
    while tick is not None and tick < now and len(ticks) <= REPLAYED_MAX:
        ticks.append(tick)
        tick = fires.next_after(tick)
    busy_until, overlaps, ran = float("-inf"), 0, 0
    for at in ticks:
        is_met = busy_until > at
        overlaps += is_met
        if is_met and job.schedule.overlap in SKIPPING:
            continue
        ran += 1
        busy_until = max(busy_until, at) + _nearest(runs, starts, at) if is_met else at + _nearest(runs, starts, at)
    return PastReplay(
        to_datetime(since),
        len(ticks),
        ran,
        overlaps,
        lengths[-1],
        lengths[len(lengths) // 2],
        tick is not None and tick < now,
    )


def _nearest(runs: Sequence[PastRun], starts: Sequence[float], at: float) -> float:
    place = bisect_left(starts, at)
    around = [other for other in (place - 1, place) if 0 <= other < len(runs)]
    return runs[min(around, key=lambda other: abs(starts[other] - at))].seconds


def _start_of(timetable: Timetable, day: int) -> int:
    midnight = day * DAY_SECONDS
    return midnight - offset_at(timetable.zone, midnight - offset_at(timetable.zone, midnight))
