"""Invariants of ticks, and of the scheduler nodes that fire them."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from foliot.model.ids import tick_run_id
from foliot.model.job import fire_of
from foliot.model.schedule import Schedule
from foliot.triggers.base import to_instant
from tests.chaos.checker.attempts import is_claim
from tests.chaos.checker.history import SECOND, History, Job, Lease, Run
from tests.chaos.checker.history import TickNote as TickRow
from tests.chaos.checker.invariant import invariant
from tests.support.ticks import JobStory, TickNote, TickRun, Version, faults_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_AT_A_TIME = ("skip", "buffer_one", "buffer_all")
SNAPSHOT = SECOND
"""The time between reading a shard's owner and the start of the transaction, and between a change and its commit."""


def moment(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def runs_by_job(history: History) -> dict[str, list[Run]]:
    """Runs made from ticks. Runs triggered by hand are not part of the schedule."""
    found: dict[str, list[Run]] = {job.id: [] for job in history.jobs}
    for run in history.runs:
        if run.job_id in found and UUID(run.id) == tick_run_id(UUID(run.job_id), run.tick_at // SECOND):
            found[run.job_id].append(run)
    return found


@invariant(4)
def one_run_a_tick(history: History) -> Iterator[str]:
    """A tick becomes at most one run, across edits, restarts and owners."""
    for job_id, runs in runs_by_job(history).items():
        for tick_at, number in Counter(run.tick_at for run in runs).items():
            if number > 1:
                yield f"job {job_id}: tick {tick_at} became {number} runs"


@invariant(5)
def every_tick_is_accounted_for(history: History) -> Iterator[str]:
    """Every tick that a job's versions define became a run or has a reason, and there are no others."""
    runs = runs_by_job(history)
    for job in history.jobs:
        if job.is_fired:
            continue
        yield from (
            f"job {job.name}: {fault}" for fault in faults_of(_story(job, runs[job.id])) if "early" not in fault
        )


def _story(job: Job, runs: list[Run]) -> JobStory:
    return JobStory(
        job_id=UUID(job.id),
        versions=tuple(
            Version(moment(version.made_at), msgspec.json.decode(version.schedule, type=Schedule), version.payload)
            for version in job.versions
        ),
        runs=tuple(TickRun(run.tick_at // SECOND, moment(run.created_at), run.payload) for run in runs),
        notes=tuple(
            TickNote(
                to_instant(moment(note.first_at)), to_instant(moment(note.last_at)), moment(note.noted_at), note.reason
            )
            for note in job.notes
        ),
        cursor=job.next_at // SECOND,
    )


@invariant(6)
def nothing_is_early(history: History) -> Iterator[str]:
    """No run exists before its tick, and none starts before it is due, by the database's clock."""
    for run in history.runs:
        if run.tick_at > run.created_at:
            yield f"run {run.id} of tick {run.tick_at} was created at {run.created_at}"
    for run_id, changes in history.changes_of.items():
        for change in changes:
            if (
                is_claim(change) or (change.before == "scheduled" and change.after in ("ready", "held"))
            ) and change.at < change.due_at:
                yield f"run {run_id} became {change.after} at {change.at} and is due at {change.due_at}"


@invariant(8)
def epochs_fence(history: History) -> Iterator[str]:
    """A shard's epoch grows with every owner, no node takes a leased shard, and only the owner fires its jobs."""
    owned: dict[str, list[Lease]] = {}
    for lease in sorted((lease for lease in history.leases if lease.kind == "shard"), key=lambda lease: lease.seq):
        before = owned.setdefault(lease.id, [])
        epoch = before[-1].epoch if before else 0
        if lease.owner and lease.epoch <= epoch and before:
            yield f"shard {lease.id} went from epoch {epoch} to {lease.epoch} when {lease.owner} took it at {lease.at}"
        if not lease.owner and lease.epoch < epoch:
            yield f"shard {lease.id} went back from epoch {epoch} to {lease.epoch} at {lease.at}"
        is_leased = lease.owner and lease.owner_before and lease.at < lease.expired_at
        if is_leased and not history.settings.has_coordinator:
            yield (
                f"shard {lease.id} was taken from {lease.owner_before} at {lease.at}, whose lease ends at "
                f"{lease.expired_at}"
            )
        before.append(lease)
    shards = {job.id: str(job.shard) for job in history.jobs}
    ticks = {run.id for runs in runs_by_job(history).values() for run in runs}
    for change in history.changes:
        if change.kind == "insert" and change.run_id in ticks and change.writer:
            run = history.by_id[change.run_id]
            if not _owned_by(change.writer, change.began_at, change.at, owned.get(shards[run.job_id], [])):
                yield (
                    f"run {run.id} of shard {shards[run.job_id]} was fired at {change.at} by {change.writer}, who "
                    f"did not own it"
                )


def _owned_by(writer: str, began_at: int, at: int, leases: list[Lease]) -> bool:
    """Whether a node owned the shard at an instant at which the transaction may have read it. Accepted if no owner is
    known."""
    if not leases:
        return True
    for place, lease in enumerate(leases):
        until = leases[place + 1].at if place + 1 < len(leases) else at
        if lease.owner and lease.writer in ("", writer) and lease.at <= at and until >= began_at - SNAPSHOT:
            return True
    return False


@invariant(26)
def overlap_policies(history: History) -> Iterator[str]:
    """A job that must not overlap has at most one open run."""
    policies = {job.id: job.overlap for job in history.jobs}
    jobs = {
        run.id: run.job_id
        for runs in runs_by_job(history).values()
        for run in runs
        if policies[run.job_id] in ONE_AT_A_TIME
    }
    under_way: dict[str, set[str]] = {}
    for change in history.changes:
        job_id = jobs.get(change.run_id)
        if job_id is None:
            continue
        runs = under_way.setdefault(job_id, set())
        if change.kind in ("delete", "finish"):
            runs.discard(change.run_id)
        elif change.after != "held":
            runs.add(change.run_id)
            if len(runs) > 1:
                yield f"job {job_id} ({policies[job_id]}) has {sorted(runs)} under way at {change.at}"


@invariant(40)
def ticks_are_due_at_their_instant(history: History) -> Iterator[str]:
    """A tick's run is due at the tick's instant, plus jitter, however late it was made."""
    runs = runs_by_job(history)
    for job in history.jobs:
        for run in runs[job.id]:
            made = next((change for change in history.changes_of.get(run.id, ()) if change.kind == "insert"), None)
            due_at = _due_at(job, run.tick_at, run.created_at)
            if made is not None and made.due_at != due_at:
                yield f"run {run.id} of tick {run.tick_at} was due at {due_at}, and was stored as due at {made.due_at}"


@invariant(41)
def what_overlaps_was_open(history: History) -> Iterator[str]:
    """A tick is recorded as `overlap` only if a run was open at its instant or was made by hand."""
    for job in history.jobs:
        runs = [run for run in history.runs if run.job_id == job.id]
        for note in job.notes:
            due_at = _due_at(job, note.first_at, note.noted_at)
            if note.reason == "overlap" and not any(_is_in_the_way(run, note, due_at) for run in runs):
                yield f"job {job.name}: tick {note.first_at} is noted as overlapped, and no run was open at its instant"


def _due_at(job: Job, tick_at: int, decided_at: int) -> int:
    """By the version in force when it was handled."""
    number = bisect_right([version.made_at for version in job.versions], decided_at) - 1
    schedule = msgspec.json.decode(job.versions[number].schedule, type=Schedule)
    return fire_of(schedule, UUID(job.id), tick_at // SECOND) * SECOND


def _is_in_the_way(run: Run, note: TickRow, due_at: int) -> bool:
    """A run made by hand bears the instant at which it was made; a run of an earlier tick does not."""
    was_there = run.created_at <= due_at or note.first_at <= run.tick_at <= run.created_at <= note.noted_at
    # An end is visible when it is committed, a moment after the instant that it bears.
    return was_there and (run.is_live or run.finished_at >= due_at - SNAPSHOT)
