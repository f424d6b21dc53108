"""`/v1/jobs`: creates jobs and shows them."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.back_pressure import BackPressure
from foliot.api.bodies import read_json
from foliot.api.known_tasks import KnownTasks
from foliot.api.openapi import described
from foliot.api.routes.recurring import calendar_named, job_id_of
from foliot.api.schemas import JobCreated, JobRequest, JobShown, created, recurring, shown
from foliot.api.submitter import Submitter
from foliot.errors import Conflict, NotFound
from foliot.model.ids import new_id
from foliot.store.hints import JOBS_TOPIC
from foliot.store.store import Store

job_decoder = msgspec.json.Decoder(JobRequest)


def jobs_router(
    *, store: Store, submitter: Submitter, known_tasks: KnownTasks, back_pressure: BackPressure, body_max_bytes: int
) -> APIRouter:
    router = APIRouter(tags=["jobs"])

    @router.post(
        "/v1/jobs", status_code=201, openapi_extra=described(201, JobCreated, body=JobRequest, problems=(400, 409, 413, 415, 422, 429, 503))
    )
    async def create_job(request: Request) -> Response:
        """Creates a job: a one-off now, after `delay_seconds` or at `schedule_time`; or a recurring one by `cron` or `every`."""
        asked = await read_json(request, job_decoder, max_bytes=body_max_bytes)
        queue = await known_tasks.queue_of(asked.task_name())
        if asked.is_recurring:
            return await create_recurring(asked, queue)
        run = asked.new_run(new_id(), queue=queue)
        await back_pressure.check(run.queue)
        stored = await submitter.submit(run)
        return Response(msgspec.json.encode(created(run, stored)), 201, {"Location": f"/v1/jobs/{run.id}"}, media_type="application/json")

    async def create_recurring(asked: JobRequest, queue: str) -> Response:
        calendar = await calendar_named(store, asked.calendar)
        job = asked.new_job(new_id(), queue=queue, now=await store.jobs.database_now(), calendar=calendar)
        if not await store.jobs.insert_job(job):
            raise Conflict(f"name: there is a job named {job.name!r} already")
        store.hints.send([JOBS_TOPIC])
        location = {"Location": f"/v1/jobs/{job.id}"}
        return Response(msgspec.json.encode(recurring(job, created=True)), 201, location, media_type="application/json")

    @router.get("/v1/jobs/{reference}", openapi_extra=described(200, JobShown, problems=(404, 503)))
    async def get_job(reference: str) -> Response:
        """Shows a job by id, or a recurring one by name too: where it stands, and how it ended."""
        job_id = job_id_of(reference)
        job = await store.jobs.get_job(job_id, reference)
        if job is not None:
            return Response(msgspec.json.encode(recurring(job)), media_type="application/json")
        run = await store.runs.get_run(job_id) if job_id else None
        if run is None:
            raise NotFound(f"there is no job {reference!r}")
        return Response(msgspec.json.encode(shown(run)), media_type="application/json")

    return router
