"""`/v1/jobs`: creates jobs and shows them."""

from __future__ import annotations

from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.bodies import read_json
from foliot.api.known_tasks import KnownTasks
from foliot.api.openapi import described
from foliot.api.schemas import JobCreated, JobRequest, JobShown, created, shown
from foliot.api.submitter import Submitter
from foliot.errors import NotFound
from foliot.model.ids import new_id
from foliot.store.store import Store

job_decoder = msgspec.json.Decoder(JobRequest)


def jobs_router(*, store: Store, submitter: Submitter, known_tasks: KnownTasks, body_max_bytes: int) -> APIRouter:
    router = APIRouter(tags=["jobs"])

    @router.post("/v1/jobs", status_code=201, openapi_extra=described(201, JobCreated, body=JobRequest, problems=(400, 413, 415, 422, 503)))
    async def create_job(request: Request) -> Response:
        """Creates a one-off job: now, after `delay_seconds`, or at `schedule_time`."""
        asked = await read_json(request, job_decoder, max_bytes=body_max_bytes)
        run = asked.new_run(new_id(), queue=await known_tasks.queue_of(asked.task_name()))
        stored = await submitter.submit(run)
        return Response(msgspec.json.encode(created(run, stored)), 201, {"Location": f"/v1/jobs/{run.id}"}, media_type="application/json")

    @router.get("/v1/jobs/{job_id}", openapi_extra=described(200, JobShown, problems=(404, 503)))
    async def get_job(job_id: str) -> Response:
        """Shows a job: where it stands, and how it ended."""
        run_id = _run_id(job_id)
        run = await store.runs.get_run(run_id) if run_id else None
        if run is None:
            raise NotFound(f"there is no job {job_id!r}")
        return Response(msgspec.json.encode(shown(run)), media_type="application/json")

    return router


def _run_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
