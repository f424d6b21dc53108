"""`/v1/explain/{id}`: why a run, workflow, recurring job or queue does not run, and what it waits for.

`archive` says how far history is archived, and why old days are still in the database.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import recurring, run_name
from foliot.api.requests.idempotency import answered
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import NotFound
from foliot.model.explanation import (
    Explanation,
    Gate,
    archive_gate,
    job_gate,
    overdue_tick_gate,
    summed_up,
    tick_gate,
    waiting_days,
)
from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.lookup import find_job, find_run, job_id_of
from foliot.store.store import Store

OVERDUE = timedelta(seconds=1)
ARCHIVE = "archive"


class ExplainRoutes:
    def __init__(self, *, store: Store) -> None:
        self._store = store
        self.router = APIRouter(tags=["explain"], route_class=PermissionRoute)
        explains = described(200, Explanation, problems=(404, 503))
        self.router.add_api_route("/v1/explain/{reference}", self.explain, methods=["GET"], openapi_extra=explains)

    @requires(Permission.VIEW)
    async def explain(self, reference: str, namespace: Within) -> Response:
        """Explains why a run, workflow, recurring job or queue is not running: each gate in order, with numbers. The
        name `archive` stands for the archive of history."""
        job_id = job_id_of(reference)
        found = await self._live(namespace, job_id) if job_id is not None else None
        found = (
            found
            or await self._job(namespace, job_id, reference)
            or (await self._ended(namespace, job_id) if job_id is not None else None)
        )
        if found is None and namespace.qualified(reference) in await self._queues(namespace):
            found = await self._store.explain.queue(namespace.qualified(reference))
        if found is None and reference == ARCHIVE:
            found = await self._archive()
        if found is None:
            raise NotFound(f"there is no run, job, workflow or queue {reference!r}")
        return answered(found)

    async def _live(self, namespace: Namespace, run_id: UUID) -> Explanation | None:
        parent = await self._store.workflow_lists.get_parent(run_id)
        live_id = run_id if parent is None else parent.run_id
        return (
            None if await find_run(self._store, namespace, live_id) is None else await self._store.explain.run(live_id)
        )

    async def _job(self, namespace: Namespace, job_id: UUID | None, reference: str) -> Explanation | None:
        job = await find_job(self._store, namespace, job_id, reference)
        if job is None:
            return None
        gates = [await self._overdue(job) or job_gate(job)]
        for tick in await self._store.ticks.list_ticks(job.id, 1):
            last = None if tick.run_id is None else await self._store.explain.run(tick.run_id)
            if last is not None:
                gates.append(Gate("run", True, f"its last run {last.id} is {last.state}: {last.summary}"))
            elif tick.run_id is None:
                gates.append(tick_gate(tick.tick_at, tick.until_at, tick.outcome, tick.decided_at, tick.blocked_by))
        queue = await self._store.explain.queue(job.queue, job.task)
        closed = [gate for gate in queue.gates if not gate.is_open]
        status = recurring(job).status
        return Explanation(str(job.id), "job", bare(job.name), status, gates[0].detail, [*gates, *closed])

    async def _archive(self) -> Explanation | None:
        """Without the error: it may name machines, and everyone who may see runs sees this."""
        archives = await self._store.archives.list_archives()
        if not archives:
            return None
        waiting = len(await self._store.partitions.list_unarchived())
        gates = [archive_gate(one.kind, one.at, one.failing_since, is_running=one.is_running) for one in archives]
        is_open = all(gate.is_open for gate in gates)
        summary = f"{summed_up(gates, 'it takes history')}; {waiting_days(waiting)}"
        return Explanation(ARCHIVE, ARCHIVE, None, "working" if is_open else "failing", summary, gates)

    async def _overdue(self, job: RecurringJob) -> Gate | None:
        """The gate of a tick that is overdue because no scheduler fires it."""
        nodes = await self._store.overview.count_nodes(None)
        if job.fire_at is None or nodes.now - job.fire_at < OVERDUE:
            return None
        return overdue_tick_gate(job.fire_at, nodes.now, nodes.schedulers)

    async def _ended(self, namespace: Namespace, run_id: UUID) -> Explanation | None:
        run = await find_run(self._store, namespace, run_id)
        if run is None:
            return None
        why = f": {run.reason}" if run.reason else ""
        message = (run.error or {}).get("message", "") if isinstance(run.error, dict) else ""
        summary = f"has ended: {run.state}{why}{f' ({message})' if message else ''}"
        return Explanation(str(run.id), "run", run_name(run.name, run.job_id), run.state, summary, [])

    async def _queues(self, namespace: Namespace) -> set[str]:
        return {queue.name for queue in await self._store.overview.list_queues(namespace)}
