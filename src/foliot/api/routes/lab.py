"""The API of the distributed-scheduler lab, exactly as its exercises use it. `api/lab_jobs.py` translates its jobs."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.cancellation import cancel
from foliot.api.job_creation import JobCreation
from foliot.api.json_response import json_response
from foliot.api.lab_jobs import (
    STATUS,
    LabJob,
    LabRequest,
    LabStats,
    LabWorker,
    latest_ids,
    made_view,
    recurring_view,
    run_view,
)
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import JobCreated
from foliot.api.requests.bodies import read_json
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import run_id_of
from foliot.api.run_filters import FINISHED_WITHIN
from foliot.api.security.permissions import Calling, PermissionRoute, Within, namespace_of_caller, requires
from foliot.errors import Conflict, Invalid, NotFound
from foliot.model.namespace import Namespace
from foliot.model.roles import Permission
from foliot.model.states import RunState
from foliot.store.lookup import find_job, find_run
from foliot.store.store import Store

decoder = msgspec.json.Decoder(LabRequest)
EXAMPLES = {
    "now": {"name": "quick", "job_type": "immediate", "execution_time_ms": 50},
    "delayed, may fail": {
        "name": "later",
        "job_type": "delayed",
        "delay_seconds": 5,
        "fail_rate": 0.5,
        "max_retries": 2,
    },
    "every minute": {"name": "every-minute", "job_type": "recurring", "cron": "* * * * *"},
}


class LabRoutes:
    def __init__(self, *, store: Store, creation: JobCreation, body_max_bytes: int) -> None:
        self._store = store
        self._creation = creation
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["lab"], route_class=PermissionRoute)
        creates = described(
            201, LabJob, body=LabRequest, examples=EXAMPLES, problems=(400, 409, 413, 415, 422, 429, 503)
        )
        add = self.router.add_api_route
        add("/jobs", self.create_job, methods=["POST"], status_code=201, openapi_extra=creates)
        add("/jobs", self.list_jobs, methods=["GET"], openapi_extra=described(200, list[LabJob], problems=(422, 503)))
        add(
            "/jobs/{reference}",
            self.get_job,
            methods=["GET"],
            openapi_extra=described(200, LabJob, problems=(404, 503)),
        )
        add(
            "/jobs/{reference}",
            self.cancel_job,
            methods=["DELETE"],
            openapi_extra=described(200, LabJob, problems=(404, 409, 503)),
        )
        add("/stats", self.get_stats, methods=["GET"], openapi_extra=described(200, LabStats, problems=(503,)))
        add(
            "/workers",
            self.list_workers,
            methods=["GET"],
            openapi_extra=described(200, list[LabWorker], problems=(503,)),
        )

    @requires(Permission.SUBMIT)
    async def create_job(self, request: Request) -> Response:
        """Creates a job that runs for `execution_time_ms` and fails with the probability `fail_rate`: now, after a
        delay, or by cron."""
        namespace = namespace_of_caller(request)
        asked = await read_json(request, decoder, max_bytes=self._body_max_bytes)
        made = await self._creation.create(namespace, asked.as_job(), request)
        # As it was created: a worker may have claimed it by now.
        return _answer(
            made_view(asked, made) if isinstance(made, JobCreated) else await self._find(namespace, str(made.id)), 201
        )

    @requires(Permission.VIEW)
    async def list_jobs(self, namespace: Within, status: str = "", limit: int = 50) -> Response:
        """Lists the recurring jobs, then the latest other jobs."""
        if status and status not in STATUS.values():
            raise Invalid(f"status: must be one of {', '.join(dict.fromkeys(STATUS.values()))}", field="status")
        limit = page_size(limit)
        found = [
            await recurring_view(self._store, job) for job in await self._store.jobs.list_jobs(namespace, "", limit)
        ]
        found = [job for job in found if not status or job.status == status]
        for run_id in await latest_ids(self._store, namespace, status, limit - len(found)):
            if (run := await find_run(self._store, namespace, run_id)) is not None:
                found.append(await run_view(self._store, run))
        return _answer(found)

    @requires(Permission.VIEW)
    async def get_job(self, reference: str, namespace: Within) -> Response:
        """Shows the status of a job, its worker, and its latest error."""
        return _answer(await self._find(namespace, reference))

    @requires(Permission.OPERATE)
    async def cancel_job(self, reference: str, caller: Calling) -> Response:
        """Cancels a job at once. A recurring job stops firing."""
        namespace = caller.namespace
        job_id, shown = run_id_of(reference), await self._find(namespace, reference)
        if await find_job(self._store, namespace, job_id, reference) is not None:
            await self._store.jobs.delete_job(job_id, actor=caller.name)
            return _answer(msgspec.structs.replace(shown, status="cancelled", scheduled_at=None))
        if shown.status in ("completed", "failed", "cancelled"):
            raise Conflict(f"the job {reference!r} is {shown.status} already")
        # Simulated work has nothing to clean up, so there is no need to wait for the worker.
        await cancel(self._store, job_id, "cancelled by request", is_forced=True)
        return _answer(await self._find(namespace, reference))

    @requires(Permission.VIEW)
    async def get_stats(self, namespace: Within) -> Response:
        """Counts waiting jobs, live workers, and the jobs of the last day by status."""
        nodes = await self._store.overview.count_nodes(namespace)
        counts = await self._store.overview.count_runs(namespace, nodes.now - FINISHED_WITHIN)
        by_status: dict[str, int] = dict.fromkeys(STATUS.values(), 0)
        for state, count in counts.items():
            by_status[STATUS[RunState(state)]] += count
        return _answer(LabStats(counts.get("ready", 0) + counts.get("held", 0), nodes.workers, by_status))

    @requires(Permission.VIEW)
    async def list_workers(self, namespace: Within) -> Response:
        """Lists the live workers. A worker's name ends in its process id, so that an exercise can kill it."""
        return _answer(
            [
                LabWorker(
                    worker.id,
                    worker.name,
                    "draining" if worker.draining_at else "active",
                    worker.running,
                    sum(worker.queues.values()),
                    worker.started_at,
                    worker.beat_at,
                )
                for worker in await self._store.workers.list_workers(namespace)
            ]
        )

    async def _find(self, namespace: Namespace, reference: str) -> LabJob:
        job_id = run_id_of(reference)
        if (job := await find_job(self._store, namespace, job_id, reference)) is not None:
            return await recurring_view(self._store, job)
        if (run := await find_run(self._store, namespace, job_id)) is not None:
            return await run_view(self._store, run)
        raise NotFound(f"there is no job {reference!r}")


def _answer(body: object, status: int = 200) -> Response:
    return json_response(body, status)
