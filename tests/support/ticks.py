"""Computes what must have happened to the ticks of recurring jobs, and compares it with the database."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import tick_run_id
from foliot.model.job import job_timetable
from foliot.model.schedule import Schedule
from foliot.triggers.base import Trigger, to_instant

VERSIONS = (
    "select job_id, made_at, definition ->> 'schedule', definition ->> 'payload' from foliot.job_versions "
    "order by version"
)
RUNS = """
select job_id, id, tick_at, created_at, payload::text from foliot.runs where job_id is not null
union all
select job_id, id, tick_at, created_at, payload::text from foliot.history where job_id is not null
"""
NOTES = "select job_id, tick_at, coalesce(until_at, tick_at), noted_at, reason from foliot.ticks"
CURSORS = "select id, next_at from foliot.jobs"


@dataclass(frozen=True, slots=True)
class Version:
    made_at: datetime
    schedule: Schedule
    payload: str | None


@dataclass(frozen=True, slots=True)
class TickRun:
    tick: int
    created_at: datetime
    payload: str | None


@dataclass(frozen=True, slots=True)
class TickNote:
    first: int
    last: int
    noted_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class JobStory:
    """Everything the database knows about one job: its versions in order, and the outcome of its ticks."""

    job_id: UUID
    versions: tuple[Version, ...]
    runs: tuple[TickRun, ...]
    notes: tuple[TickNote, ...]
    cursor: int
    """The first unhandled tick."""


def faults_of(story: JobStory) -> list[str]:
    """The errors in the outcomes of a job's ticks; none if all is well.

    A version is in force from `made_at` until the `made_at` of the next version. It alone defines the ticks after its
    own `made_at`, up to and including that of the next version. The ticks of the last version count up to the cursor.
    For each version:

    - Each of its ticks is there exactly once, as a run or inside a note, and there is nothing else. A run belongs to
      the version in force when it was created, a note to the version in force when it was written. The exception is the
      note about ticks that an edit overtook: it bears the instant of the edit, and belongs to the version before.
    - A run carries the payload of its version, and was not created before its tick.

    A pause makes no version: its ticks are in a note of the version in force.
    """
    made = [version.made_at for version in story.versions]
    triggers = [
        job_timetable(version.schedule, story.job_id, to_instant(made[0]), None).ticks for version in story.versions
    ]
    faults: list[str] = []
    dealt_with: list[Counter[int]] = [Counter() for _ in made]
    for run in story.runs:
        number = bisect_right(made, run.created_at) - 1
        dealt_with[number][run.tick] += 1
        if to_instant(run.created_at) < run.tick:
            faults.append(f"tick {run.tick} became a run early, at {run.created_at}")
        if run.payload != story.versions[number].payload:
            faults.append(
                f"tick {run.tick} has payload {run.payload}, but version {number + 1} has "
                f"{story.versions[number].payload}"
            )
    for note in story.notes:
        number = bisect_left(made, note.noted_at) - 1
        covered = list(ticks_within(triggers[number], note.first - 1, note.last))
        dealt_with[number].update(covered)
        if not covered or (covered[0], covered[-1]) != (note.first, note.last):
            faults.append(f"{note} begins or ends beside the ticks of version {number + 1}")
    for number, trigger in enumerate(triggers):
        until = to_instant(made[number + 1]) if number + 1 < len(made) else story.cursor - 1
        expected = Counter(ticks_within(trigger, to_instant(made[number]), until))
        within = f"version {number + 1} of {len(made)}, made {made[number]}"
        faults += [f"tick {tick} is lost: {within}" for tick in sorted((expected - dealt_with[number]).elements())]
        faults += [
            f"tick {tick} is doubled or not of this version: {within}"
            for tick in sorted((dealt_with[number] - expected).elements())
        ]
    return faults


def ticks_within(trigger: Trigger, after: int, until: int) -> Iterator[int]:
    tick = trigger.next_after(after)
    while tick is not None and tick <= until:
        yield tick
        tick = trigger.next_after(tick)


async def stories(sql: Any) -> list[JobStory]:
    """The story of every recurring job, read at one instant. Runs triggered by hand are left out."""
    async with sql.transaction(isolation="repeatable_read", readonly=True):
        versions, runs, notes = [await _by_job(sql, query) for query in (VERSIONS, RUNS, NOTES)]
        cursors = await sql.fetch(CURSORS)
    return [
        JobStory(
            job_id=job_id,
            versions=tuple(
                Version(at, msgspec.json.decode(schedule, type=Schedule), payload)
                for at, schedule, payload in versions[job_id]
            ),
            runs=tuple(
                TickRun(to_instant(tick), at, payload)
                for run_id, tick, at, payload in runs.get(job_id, ())
                if run_id == tick_run_id(job_id, to_instant(tick))
            ),
            notes=tuple(
                TickNote(to_instant(first), to_instant(last), at, reason)
                for first, last, at, reason in notes.get(job_id, ())
            ),
            cursor=to_instant(cursor),
        )
        for job_id, cursor in cursors
    ]


async def _by_job(sql: Any, query: str) -> dict[UUID, list[Sequence[Any]]]:
    found: dict[UUID, list[Sequence[Any]]] = {}
    for job_id, *rest in await sql.fetch(query):
        found.setdefault(job_id, []).append(rest)
    return found


async def assert_sound(sql: Any) -> list[JobStory]:
    """Asserts that every tick of every job is there exactly once, on time or with a reason."""
    found = await stories(sql)
    faults = [f"job {story.job_id}: {fault}" for story in found for fault in faults_of(story)]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:30])
    return found


async def fired_past(sql: Any, instant: datetime) -> bool:
    """Whether every job has handled all its ticks up to this instant."""
    return bool(await sql.fetchval("select min(next_at) > $1 from foliot.jobs", instant))
