"""`/v1/jobs`: creates jobs, one or many at once, and shows one."""

from __future__ import annotations

from functools import partial

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.job_creation import JobCreation
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import (
    BatchCreated,
    BatchJobs,
    BatchRequest,
    JobChecked,
    JobCreated,
    JobShown,
    RecurringShown,
    created,
    recurring,
    shown,
    submitted,
)
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.etags import Version, tagged
from foliot.api.requests.idempotency import IdempotentRequests, Work, answered, idempotency_key_of
from foliot.api.requests.traces import TraceLinks, in_trace_of
from foliot.api.security.audit_log import NoteWithin
from foliot.api.security.permissions import PermissionRoute, Within, namespace_of_caller, requires
from foliot.config import Config
from foliot.errors import NotFound
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.roles import Permission
from foliot.model.run import NewRun
from foliot.store.lookup import find_job, find_run, job_id_of
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.submission.admission import Admission, refuse_batch_size

job_decoder = msgspec.json.Decoder(JobRequest)
batch_decoder: msgspec.json.Decoder[BatchRequest | list[JobRequest]] = msgspec.json.Decoder(BatchRequest | BatchJobs)


class CountedBatch(msgspec.Struct, frozen=True):
    """A batch whose jobs are counted, not decoded."""

    jobs: list[msgspec.Raw]


counting_decoder: msgspec.json.Decoder[CountedBatch | list[msgspec.Raw]] = msgspec.json.Decoder(
    CountedBatch | list[msgspec.Raw]
)

EXAMPLES = {
    "now": {"task": "send_invoice", "payload": {"customer_id": 7}},
    "a command, in ten seconds": {"command": "echo hello", "delay_seconds": 10},
    "at an instant": {
        "task": "send_invoice",
        "payload": {"customer_id": 7},
        "schedule_time": "2099-12-31T23:00:00Z",
        "priority": 5,
    },
    "every night": {
        "name": "nightly-cleanup",
        "command": "make clean",
        "cron": "0 3 * * *",
        "timezone": "Europe/Zurich",
    },
    "every five minutes": {"name": "poll", "task": "send_invoice", "every": "5m", "overlap": "skip", "retries": 0},
}
BATCHES = {
    "two jobs": {"jobs": [{"task": "send_invoice", "payload": {"customer_id": 7}}, {"command": "echo hello"}]},
    "a plain list": [{"task": "send_invoice", "payload": {"customer_id": 8}}],
}


def _refuse_too_many(body: bytes) -> None:
    """Refuses a batch that is too large before decoding its jobs: a body holds hundreds of thousands of empty jobs,
    and each takes half a kilobyte of memory."""
    try:
        batch = counting_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # The decoder of jobs reports the error.
    refuse_batch_size(len(batch if isinstance(batch, list) else batch.jobs))


class JobRoutes:
    def __init__(self, *, store: Store, creation: JobCreation, admission: Admission, config: Config) -> None:
        self._store = store
        self._creation = creation
        self._admission = admission
        self._config = config
        self._traces = TraceLinks(config)
        self._idempotent_requests = IdempotentRequests(store=store)
        self.creating = APIRouter(tags=["jobs"], route_class=PermissionRoute)
        self.router = APIRouter(tags=["jobs"], route_class=PermissionRoute)
        problems = (400, 409, 413, 415, 422, 429, 503)
        creates = described(
            201, JobCreated, RecurringShown, body=JobRequest, examples=EXAMPLES, problems=problems, repeated=True
        )
        bodies = BatchRequest | BatchJobs
        creates_many = described(201, BatchCreated, body=bodies, examples=BATCHES, problems=problems, repeated=True)
        shows = described(200, JobShown, RecurringShown, problems=(404, 422, 503), tagged=True)
        add = self.creating.add_api_route
        add("/v1/jobs", self.create_job, methods=["POST"], status_code=201, openapi_extra=creates)
        add("/v1/jobs/batch", self.create_batch, methods=["POST"], status_code=201, openapi_extra=creates_many)
        checks = described(200, JobChecked, body=JobRequest, examples=EXAMPLES, problems=(400, 413, 415, 422, 503))
        add("/v1/jobs/check", self.check_job, methods=["POST"], openapi_extra=checks)
        self.router.add_api_route("/v1/jobs/{reference}", self.get_job, methods=["GET"], openapi_extra=shows)

    @requires(Permission.SUBMIT)
    async def create_job(self, request: Request) -> Response:
        """Creates a one-off job, due now, after `delay_seconds` or at `schedule_time`; or a recurring job with
        `cron` or `every`."""
        body, namespace = await read(request, self._config.body_max_bytes), namespace_of_caller(request)
        asked = await decoded(body, job_decoder)
        key = idempotency_key_of(request, asked.idempotency_key)
        return await self._creation.answer(request, "create_job", namespace, asked, key, body)

    @requires(Permission.SUBMIT)
    async def create_batch(self, request: Request, namespace: Within) -> Response:
        """Creates up to 10,000 one-off jobs, all of them or none. An error names the index of the job."""
        body = await read(request, self._config.batch_max_bytes)
        asked = await decoded(body, batch_decoder, look_first=_refuse_too_many)
        key = idempotency_key_of(request, None if isinstance(asked, list) else asked.idempotency_key)
        jobs = [in_trace_of(request, job) for job in (asked if isinstance(asked, list) else asked.jobs)]
        field = "" if isinstance(asked, list) else "jobs"
        note = NoteWithin(request, "create_batch", store=self._store)
        if key is not None:
            prepare = partial(self._prepare, namespace, jobs, field)
            announce = partial(self._creation.announce, namespace)
            return await self._idempotent_requests.answer(
                namespace, key, "/v1/jobs/batch", body, prepare, announce, note
            )
        runs = await self._admission.accept_batch(namespace, jobs, field)
        if any(run.unique_key is not None for run in runs):
            work = note.around(partial(self._store_within, runs))
            made = await self._store.database.in_transaction("create_batch", work)
        else:
            stored = await note.beside(lambda beside: self._store.run_inserts.insert_runs(runs, beside=beside))
            made = BatchCreated([created(run, stored[run.id]) for run in runs], created=True)
        note.committed()
        self._creation.announce(namespace, made)
        return answered(made, 201)

    @requires(Permission.SUBMIT, reading=True)
    async def check_job(self, request: Request, namespace: Within) -> Response:
        """Checks a job as creating it would, and shows the result without storing it."""
        asked = await decoded(await read(request, self._config.body_max_bytes), job_decoder)
        return answered(await self._creation.check(namespace, asked))

    @requires(Permission.VIEW)
    async def get_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Shows a job by id, or a recurring job by id or name. A recurring job has an ETag."""
        job_id = job_id_of(reference)
        job = await find_job(self._store, namespace, job_id, reference)
        if job is not None:
            return tagged(request, recurring(job), Version(job.version, job.created_at))
        run = await find_run(self._store, namespace, job_id) if job_id else None
        if run is None:
            raise NotFound(f"there is no job {reference!r}")
        return answered(shown(run, self._traces))

    async def _prepare(self, namespace: Namespace, jobs: list[JobRequest], field: str) -> Work:
        return partial(self._store_within, await self._admission.accept_batch(namespace, jobs, field))

    async def _store_within(self, runs: list[NewRun], within: Transaction) -> BatchCreated:
        found = await self._store.submissions.submit_within(within, runs)
        return BatchCreated([submitted(run) for run in found], created=True)
