"""`GET /v1/queues` and `GET /v1/stats`: counts of runs, queues and nodes. Counting stops at a limit, and `more` says
so."""

from __future__ import annotations

from datetime import datetime

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.run_filters import FINISHED_WITHIN
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.model.states import LIVE, TERMINAL
from foliot.store.overview import COUNT_MAX, QueueView
from foliot.store.store import Store


class Count(msgspec.Struct, frozen=True):
    count: int
    more: bool
    """Counting stopped at a limit: there may be more."""


class Paused(msgspec.Struct, frozen=True):
    since: datetime
    until: datetime | None
    reason: str | None


class QueueShown(msgspec.Struct, frozen=True):
    name: str
    ready: Count
    oldest_ready_seconds: float | None
    running: Count
    scheduled: Count
    held: Count
    workers: int
    slots: int
    """The slots of the workers that are not draining."""
    paused: Paused | None
    max_running: int | None
    max_depth: int | None


class QueueList(msgspec.Struct, frozen=True):
    items: list[QueueShown]


class Finished(msgspec.Struct, frozen=True):
    since: datetime
    more: bool
    states: dict[str, int]


class WorkerTotals(msgspec.Struct, frozen=True):
    living: int
    draining: int
    slots: int


class SchedulerTotals(msgspec.Struct, frozen=True):
    living: int
    shards: int
    owned_shards: int


class Stats(msgspec.Struct, frozen=True):
    live: dict[str, Count]
    finished: Finished
    """The runs of the last day that have ended."""
    workers: WorkerTotals
    schedulers: SchedulerTotals


def queues_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["overview"], route_class=PermissionRoute)

    @router.get("/v1/queues", openapi_extra=described(200, QueueList, problems=(503,)))
    @requires(Permission.VIEW)
    async def list_queues(namespace: Within) -> Response:
        """Lists the queues with their waiting and running runs, workers and limits."""
        return _answer(QueueList([shown(queue) for queue in await store.overview.list_queues(namespace)]))

    @router.get("/v1/stats", openapi_extra=described(200, Stats, problems=(503,)))
    @requires(Permission.VIEW)
    async def get_stats(namespace: Within) -> Response:
        """Counts runs by state, workers, scheduler nodes and shards."""
        nodes = await store.overview.count_nodes(namespace)
        since = nodes.now - FINISHED_WITHIN
        counts = await store.overview.count_runs(namespace, since)
        ended = {str(state): counts.get(state, 0) for state in sorted(TERMINAL)}
        return _answer(
            Stats(
                {str(state): counted(counts.get(state, 0)) for state in sorted(LIVE)},
                Finished(since, sum(ended.values()) >= COUNT_MAX, ended),
                WorkerTotals(nodes.workers, nodes.draining_workers, nodes.slots),
                SchedulerTotals(nodes.schedulers, nodes.shards, nodes.owned_shards),
            )
        )

    return router


def shown(queue: QueueView) -> QueueShown:
    def part(state: str, count: int) -> Count:
        return Count(count, state in queue.uncounted_states)

    return QueueShown(
        name=bare(queue.name),
        ready=counted(queue.ready),
        oldest_ready_seconds=queue.oldest_ready_seconds,
        running=part("running", queue.running),
        scheduled=part("scheduled", queue.scheduled),
        held=part("held", queue.held),
        workers=queue.workers,
        slots=queue.slots,
        max_running=queue.max_running,
        max_depth=queue.max_depth,
        paused=Paused(queue.paused_at, queue.paused_until, queue.paused_reason) if queue.paused_at else None,
    )


def counted(count: int) -> Count:
    return Count(count, count >= COUNT_MAX)


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
