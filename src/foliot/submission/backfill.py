"""The ticks that a backfill runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from foliot.errors import Invalid
from foliot.model.job import RecurringJob
from foliot.model.job_request import LATEST
from foliot.model.schedule import Neighbours
from foliot.triggers.base import fire_times, to_instant

TICKS_MAX = 10_000


def ticks_between(job: RecurringJob, start: datetime, end: datetime) -> list[int]:
    """The ticks from `start` to `end` that the schedule has passed; a tick that is still to fire would run twice.
    Raises `Invalid` for more than `TICKS_MAX`."""
    if start > end:
        raise Invalid("to: is before from", field="to")
    if max(start, end) >= LATEST or start.year < 1970:
        raise Invalid("from: must be between 1970 and 2200", field="from")
    first, last = to_instant(start) - (0 if start.microsecond else 1), to_instant(end)
    if job.fire_at is not None and job.next_at is not None:
        last = min(last, to_instant(job.next_at) - 1)
    found = [tick for tick in fire_times(job.timetable.fires, first, TICKS_MAX + 1) if tick <= last]
    if len(found) > TICKS_MAX:
        raise Invalid(f"to: more than {TICKS_MAX} ticks; take a smaller range", field="to")
    return found


def neighbours_of(job: RecurringJob, ticks: Sequence[int]) -> list[Neighbours]:
    """The ticks before and after each of these, which follow one another."""
    if not ticks:
        return []
    before, after = job.timetable.beside(ticks[0])[0], job.timetable.beside(ticks[-1])[1]
    return list(zip([before, *ticks[:-1]], [*ticks[1:], after], strict=True))
