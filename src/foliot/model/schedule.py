"""The schedule of a recurring job: when its ticks are due, and what to do about those that can't be kept."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from foliot.errors import Invalid
from foliot.triggers.base import Trigger, to_instant
from foliot.triggers.compose import BoundedTrigger
from foliot.triggers.cron import parse_cron
from foliot.triggers.durations import parse_duration
from foliot.triggers.interval import IntervalTrigger
from foliot.triggers.wall import DstFold, DstGap, WallPolicy
from foliot.triggers.zones import zone_named

Overlap = Literal["skip", "buffer_one", "buffer_all", "allow_all"]
Catchup = Literal["none", "latest", "all"]
Reason = Literal["overlap", "missed", "superseded", "paused"]
MAX_CATCHUP_WINDOW_SECONDS = 31_536_000


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Either `cron` or `every`."""

    cron: Annotated[str, Meta(max_length=500)] | None = None
    every: Annotated[str, Meta(max_length=100)] | None = None
    timezone: Annotated[str, Meta(max_length=100)] = "UTC"
    dst_gap: DstGap = "shift"
    dst_fold: DstFold = "first"
    start_at: Annotated[datetime, Meta(tz=True)] | None = None
    end_at: Annotated[datetime, Meta(tz=True)] | None = None
    jitter_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 0
    overlap: Overlap = "skip"
    catchup: Catchup = "latest"
    catchup_window_seconds: Annotated[int, Meta(ge=0, le=MAX_CATCHUP_WINDOW_SECONDS)] = 86_400
    catchup_max: Annotated[int, Meta(ge=1, le=10_000)] = 100
    grace_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 60


@dataclass(frozen=True, slots=True)
class Note:
    """A tick, or with `until` all ticks from one to another, that will not become a run."""

    reason: Reason
    tick: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done now about the ticks of a job that are due."""

    fire: int | None
    """The tick that becomes a run. One at a time, so that each sees whether the one before is still open."""
    notes: tuple[Note, ...]
    next_tick: int | None
    """Where the cursor goes."""


@lru_cache(maxsize=65_536)
def trigger_of(schedule: Schedule, seed: str, anchor: int) -> Trigger:
    """The ticks of a schedule. `seed` is what H is hashed from; `anchor` is where `every` counts from, unless there is a `start_at`."""
    zone = zone_named(schedule.timezone)
    start = None if schedule.start_at is None else to_instant(schedule.start_at)
    end = None if schedule.end_at is None else to_instant(schedule.end_at)
    if start is not None and end is not None and start > end:
        raise Invalid("end_at: is before start_at", field="end_at")
    if (schedule.cron is None) == (schedule.every is None):
        raise Invalid("cron: give either cron or every", field="cron")
    inner: Trigger
    if schedule.cron is not None:
        inner = parse_cron(schedule.cron, zone, seed=seed, dst_gap=schedule.dst_gap, dst_fold=schedule.dst_fold)
    else:
        period = parse_duration(schedule.every or "", field="every")
        policy = WallPolicy(zone, schedule.dst_gap, schedule.dst_fold)
        inner = IntervalTrigger(period, start if start is not None else anchor, policy)
    return inner if start is None and end is None else BoundedTrigger(inner, start, end)


def jitter_of(schedule: Schedule, job_id: UUID, tick: int) -> int:
    """A delay that is the same whenever it is asked for, so that "is it late?" has an answer."""
    if not schedule.jitter_seconds:
        return 0
    digest = hashlib.sha256(job_id.bytes + tick.to_bytes(8, "big", signed=True)).digest()
    return int.from_bytes(digest[:8], "big") % (schedule.jitter_seconds + 1)


def plan(schedule: Schedule, trigger: Trigger, first: int, now: int) -> Plan:
    """Deals with the ticks from `first`, which is due, up to now.

    A tick within its grace fires. Older ones are caught up as the schedule says, never one by one without bound: years of missed ticks
    become a few notes and one sum.
    """
    late_until = now - schedule.grace_seconds - schedule.jitter_seconds
    if first >= late_until:
        return Plan(first, (), trigger.next_after(first))
    # A window shorter than the grace takes nothing away from the grace.
    window_start = min(max(first, now - schedule.catchup_window_seconds), late_until)
    keep = {"none": 0, "latest": 1, "all": schedule.catchup_max}[schedule.catchup]
    kept = last_ticks(trigger, window_start - 1, late_until - 1, keep)
    if kept and kept[0] == first:
        return Plan(first, (), trigger.next_after(first))
    # What is kept comes up tick by tick from here on; what lies before it is noted at once.
    until = kept[0] if kept else late_until
    inside: Reason = "superseded" if schedule.catchup == "latest" else "missed"
    outside = _note(trigger, "missed", first, window_start)
    notes = [*outside, *_note(trigger, inside, window_start if outside else first, until)]
    return Plan(None, tuple(notes), kept[0] if kept else trigger.next_after(until - 1))


def _note(trigger: Trigger, reason: Reason, start: int, end: int) -> list[Note]:
    """One note for all the ticks in [start, end), or none where there are none."""
    first = trigger.next_after(start - 1)
    if first is None or first >= end:
        return []
    last = last_ticks(trigger, first - 1, end - 1, 1)[0]
    return [Note(reason, first, None if first == last else last)]


def last_ticks(trigger: Trigger, after: int, until: int, count: int) -> list[int]:
    """The last `count` ticks in (after, until]. Looks back in growing steps, so its cost does not depend on how long ago `after` was."""
    span = 1
    while count and after < until:
        start = max(after, until - span)
        found: deque[int] = deque(maxlen=count)
        tick = trigger.next_after(start)
        while tick is not None and tick <= until:
            found.append(tick)
            tick = trigger.next_after(tick)
        if len(found) == count or start == after:
            return list(found)
        span *= 2
    return []
