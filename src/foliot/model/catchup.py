"""Catch-up: which ticks become runs after a time without a scheduler node, and which are only noted. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from foliot.triggers.base import Trigger, last_ticks

if TYPE_CHECKING:
    from foliot.model.schedule import Schedule, Timetable

Catchup = Literal["none", "latest", "all"]
Reason = Literal["overlap", "missed", "superseded", "paused", "excluded"]


@dataclass(frozen=True, slots=True)
class Note:
    """A tick, or with `until` all ticks from one to another, that will not become a run."""

    reason: Reason
    tick: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan for the due ticks of a job."""

    fire: int | None
    """The tick that becomes a run. One at a time, so that each sees whether the previous run is live."""
    notes: tuple[Note, ...]
    next_tick: int | None
    """Where the cursor goes."""


def plan(schedule: Schedule, timetable: Timetable, first: int, now: int) -> Plan:
    """Deals with the ticks from `first`, which is due, up to now.

    A tick within its grace fires. `catchup` decides about older ticks. Their number does not matter: years of missed
    ticks become a few notes, as do the ticks of an excluded day.
    """
    ticks, excluded = timetable.ticks, timetable.excluded
    late_until = now - schedule.grace_seconds - schedule.jitter_seconds
    # A window shorter than the grace takes nothing away from the grace.
    window_start = min(max(first, now - schedule.catchup_window_seconds), late_until)
    if excluded is not None and first >= window_start and excluded.excludes_instant(first):
        next_day = excluded.start_of(excluded.day_of(first) + 1)
        return Plan(None, tuple(_note(ticks, "excluded", first, next_day)), ticks.next_after(next_day - 1))
    if first >= late_until:
        return Plan(first, (), ticks.next_after(first))
    keep = {"none": 0, "latest": 1, "all": schedule.catchup_max}[schedule.catchup]
    kept = last_ticks(timetable.fires, window_start - 1, late_until - 1, keep)
    if kept and kept[0] == first:
        return Plan(first, (), ticks.next_after(first))
    # The kept ticks are planned one by one from here on. Earlier ones are noted at once.
    until = kept[0] if kept else late_until
    inside: Reason = "superseded" if schedule.catchup == "latest" else "missed"
    outside = _note(ticks, "missed", first, window_start)
    notes = [*outside, *_note(ticks, inside, window_start if outside else first, until)]
    return Plan(None, tuple(notes), kept[0] if kept else ticks.next_after(until - 1))


def _note(trigger: Trigger, reason: Reason, start: int, end: int) -> list[Note]:
    """One note for all the ticks in [start, end), or none where there are none."""
    first = trigger.next_after(start - 1)
    if first is None or first >= end:
        return []
    last = last_ticks(trigger, first - 1, end - 1, 1)[0]
    return [Note(reason, first, None if first == last else last)]
