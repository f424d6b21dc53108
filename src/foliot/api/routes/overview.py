"""`GET /v1/overview`: the state of a namespace in a few numbers, and what needs attention."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.upcoming_jobs import upcoming_jobs
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.model.upcoming import crowding, fires_of
from foliot.store.attention import LIMIT
from foliot.store.store import Store
from foliot.store.workers import LATE_SHARE
from foliot.triggers.base import to_datetime, to_instant

# A tick fires within a second; this late, something is wrong.
LATE_SECONDS = 5.0
FAILED_WITHIN, FAILING_WITHIN, GROWING_WITHIN = timedelta(hours=1), timedelta(hours=24), timedelta(hours=6)
Kind = Literal[
    "failing_job",
    "growing_group",
    "open_circuit",
    "pause",
    "late_worker",
    "approvals",
    "ended_job",
]


class AttentionCount(msgspec.Struct, frozen=True):
    count: int
    more: bool
    """Counting stopped at a limit."""


class AttentionEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something to look at. `kind` says what it is, and what the other fields mean."""

    kind: Kind
    name: str
    """Of the job, task, queue, worker or group of failures; `everything` for a pause of everything."""
    reference: str
    """Leads to its page: a name, an id, or the fingerprint of a group."""
    since: datetime | None = None
    until: datetime | None = None
    count: int | None = None
    """failing_job: failures in a row. growing_group: failures in the last three hours. open_circuit: failures in a row.
    approvals: the runs that wait."""
    before: int | None = None
    """growing_group: failures in the three hours before."""
    seconds: float | None = None
    """late_worker: since its last heartbeat."""
    run_id: UUID | None = None
    of: Literal["queue", "task", "job", "everything"] | None = None
    """pause: what is paused."""
    text: str | None = None
    """The message of the error, or the reason of the pause."""


class Density(msgspec.Struct, frozen=True):
    """How many ticks fire in each minute of the next hour."""

    since: datetime
    minutes: Annotated[list[int], Meta(min_length=60, max_length=60)]
    more: bool
    """Not all jobs were looked at, so there are more ticks."""


class OverviewShown(msgspec.Struct, frozen=True):
    at: datetime
    ready: AttentionCount
    held: AttentionCount
    running: AttentionCount
    scheduled: AttentionCount
    failed: AttentionCount
    """In the last hour."""
    oldest_ready_seconds: float | None
    oldest_ready_queue: str | None
    """The queue with the run that has been ready for longest."""
    workers: int
    slots: int
    late_ticks: AttentionCount
    """Jobs whose tick should have fired more than five seconds ago."""
    late_seconds: float | None
    is_empty: bool
    """There is no run and no recurring job."""
    attention: list[AttentionEntry]
    """The most important first; of each kind a few."""
    has_more_attention: bool
    next_hour: Density


def overview_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["overview"], route_class=PermissionRoute)

    @router.get("/v1/overview", openapi_extra=described(200, OverviewShown, problems=(503,)))
    @requires(Permission.VIEW)
    async def get_overview(namespace: Within) -> Response:
        """Shows how things are: waiting, running and failed runs, late ticks, and what somebody should look at."""
        (beat,) = await store.pulse.take_pulse([namespace.name])
        now = beat.at
        late = await store.attention.count_late(namespace, LATE_SECONDS)
        failed, has_more_failed = await store.attention.count_failed(namespace, now - FAILED_WITHIN)
        entries, has_more = await _attention(store, namespace, now)
        oldest_queue = await store.attention.oldest_ready_queue(namespace)

        def counted(state: str, count: int) -> AttentionCount:
            return AttentionCount(count, state in beat.uncounted_states)

        return json_response(
            OverviewShown(
                at=now,
                ready=AttentionCount(beat.ready, beat.has_more_ready),
                held=counted("held", beat.held),
                running=counted("running", beat.running),
                scheduled=counted("scheduled", beat.scheduled),
                failed=AttentionCount(failed, has_more_failed),
                oldest_ready_seconds=beat.oldest_ready_seconds,
                oldest_ready_queue=None if oldest_queue is None else bare(oldest_queue),
                workers=beat.workers,
                slots=beat.slots,
                late_ticks=AttentionCount(late.jobs, False),
                late_seconds=late.seconds,
                is_empty=await _is_empty(store, namespace),
                attention=entries,
                has_more_attention=has_more,
                next_hour=await _density(store, namespace, now),
            )
        )

    return router


async def _is_empty(store: Store, namespace: Namespace) -> bool:
    return not (await store.jobs.list_jobs(namespace, "", 1) or await store.attention.has_runs(namespace))


async def _attention(store: Store, namespace: Namespace, now: datetime) -> tuple[list[AttentionEntry], bool]:
    found = store.attention
    kinds = [
        [
            AttentionEntry(
                "pause",
                bare(pause.name),
                bare(pause.name),
                pause.paused_at,
                until=pause.until,
                of=pause.kind,  # type: ignore[arg-type]
                text=pause.reason,
            )
            for pause in await found.list_pauses(namespace)
        ],
        [
            AttentionEntry("late_worker", worker.name, str(worker.id), seconds=worker.silent_seconds)
            for worker in await found.list_late_workers(namespace, LATE_SHARE)
        ],
        [
            AttentionEntry(
                "open_circuit", bare(circuit.task), bare(circuit.task), until=circuit.open_until, count=circuit.failures
            )
            for circuit in await found.list_open_circuits(namespace)
        ],
        [
            AttentionEntry(
                "failing_job", bare(job.name), bare(job.name), job.failed_at, count=job.in_a_row, run_id=job.run_id
            )
            for job in await found.list_failing_jobs(namespace, now - FAILING_WITHIN)
        ],
        [
            AttentionEntry(
                "growing_group",
                bare(group.task),
                group.fingerprint,
                group.last_at,
                count=group.lately,
                before=group.before,
                run_id=group.sample_id,
                text=group.message,
            )
            for group in await found.list_growing_groups(namespace, now - GROWING_WITHIN, now - GROWING_WITHIN / 2)
        ],
        [
            AttentionEntry("approvals", run.name, str(run.run_id), run.since, count=run.waiting, run_id=run.run_id)
            for run in (await found.list_approvals(namespace))[:1]
        ],
        [AttentionEntry("ended_job", bare(name), bare(name)) for name in await found.list_ended_jobs(namespace)],
    ]
    return [entry for entries in kinds for entry in entries[:LIMIT]], any(len(entries) > LIMIT for entries in kinds)


async def _density(store: Store, namespace: Namespace, now: datetime) -> Density:
    begin = to_instant(now) // 60 * 60
    end = begin + 3600
    jobs, is_complete = await upcoming_jobs(store, namespace, to_datetime(end))
    fires = await asyncio.to_thread(fires_of, [one for _, one in jobs], end)
    starts = [(at, 0.0) for found in fires.by_job.values() for at in found]
    minutes = [bucket.fires for bucket in crowding(starts, begin, end, 60)]
    return Density(to_datetime(begin), minutes, not (is_complete and fires.is_complete))
