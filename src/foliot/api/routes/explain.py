"""`/v1/explain/{id}`: why it does not run, or what becomes of it. Of a run, a workflow, a recurring job, or a queue by its name."""

from __future__ import annotations

from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.access import GuardedRoute, Within, requires
from foliot.api.keyed import answered
from foliot.api.openapi import described
from foliot.api.owned import find_job, find_run
from foliot.api.routes.recurring import job_id_of
from foliot.api.schemas import recurring, run_name
from foliot.errors import NotFound
from foliot.model.access import Permission
from foliot.model.explanation import Explanation, Gate
from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace, bare
from foliot.store.store import Store


class ExplainRoutes:
    def __init__(self, *, store: Store) -> None:
        self._store = store
        self.router = APIRouter(tags=["explain"], route_class=GuardedRoute)
        explains = described(200, Explanation, problems=(404, 503))
        self.router.add_api_route("/v1/explain/{reference}", self.explain, methods=["GET"], openapi_extra=explains)

    @requires(Permission.VIEW)
    async def explain(self, reference: str, namespace: Within) -> Response:
        """Why it is not running: the gates in order, with numbers."""
        job_id = job_id_of(reference)
        found = await self._live(namespace, job_id) if job_id is not None else None
        found = (
            found or await self._job(namespace, job_id, reference) or (await self._ended(namespace, job_id) if job_id is not None else None)
        )
        if found is None and namespace.qualified(reference) in await self._queues(namespace):
            found = await self._store.explain.queue(namespace.qualified(reference))
        if found is None:
            raise NotFound(f"there is no run, job, workflow or queue {reference!r}")
        return answered(found)

    async def _live(self, namespace: Namespace, run_id: UUID) -> Explanation | None:
        parent = await self._store.workflows.get_parent(run_id)
        live_id = run_id if parent is None else parent.run_id
        return None if await find_run(self._store, namespace, live_id) is None else await self._store.explain.run(live_id)

    async def _job(self, namespace: Namespace, job_id: UUID | None, reference: str) -> Explanation | None:
        job = await find_job(self._store, namespace, job_id, reference)
        if job is None:
            return None
        runs = [tick.run_id for tick in await self._store.jobs.list_ticks(job.id, 1) if tick.run_id is not None]
        last = await self._store.explain.run(runs[0]) if runs else None
        gates = [gate_of(job), *([] if last is None else [Gate("run", True, f"its last run {last.id} is {last.state}: {last.summary}")])]
        queue = await self._store.explain.queue(job.queue, job.task)
        closed = [gate for gate in queue.gates if not gate.is_open]
        status = recurring(job).status
        return Explanation(str(job.id), "job", bare(job.name), status, gates[0].detail, [*gates, *closed])

    async def _ended(self, namespace: Namespace, run_id: UUID) -> Explanation | None:
        run = await find_run(self._store, namespace, run_id)
        if run is None:
            return None
        why = f": {run.reason}" if run.reason else ""
        message = (run.error or {}).get("message", "") if isinstance(run.error, dict) else ""
        summary = f"has ended: it is {run.state}{why}{f' ({message})' if message else ''}"
        return Explanation(str(run.id), "run", run_name(run.name, run.job_id), run.state, summary, [])

    async def _queues(self, namespace: Namespace) -> set[str]:
        return {queue.name for queue in await self._store.overview.list_queues(namespace)}


def gate_of(job: RecurringJob) -> Gate:
    """What the job itself waits for."""
    if job.paused_at is not None:
        until = f" until {job.paused_until:%Y-%m-%dT%H:%M:%SZ}" if job.paused_until else ""
        because = f" because {job.paused_reason}" if job.paused_reason else ""
        return Gate("pause", False, f"is paused since {job.paused_at:%Y-%m-%dT%H:%M:%SZ}{because}{until}")
    if job.runs_left == 0:
        return Gate("ended", False, "has had all its runs")
    if job.fire_at is not None:
        return Gate("due", False, f"is next due at {job.fire_at:%Y-%m-%dT%H:%M:%SZ}", {"next_at": job.next_at, "fire_at": job.fire_at})
    if not job.schedule.has_ticks:
        return Gate(
            "dependencies",
            False,
            f"is fired when all of these have succeeded: {', '.join(bare(name) for name in job.schedule.after or ())}",
        )
    return Gate("ended", False, "will not be due any more")
