"""`/v1/jobs`: creates jobs, one or many at once, and shows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.back_pressure import BackPressure
from foliot.api.job_dependencies import find_dependencies
from foliot.api.lookup import find_job, find_run
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import (
    BATCH_MAX,
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
from foliot.api.requests.bodies import BODY, decoded, read
from foliot.api.requests.etags import tagged
from foliot.api.requests.idempotency import KeyedRequests, Work, answered, idempotency_key_of
from foliot.api.routes.recurring import calendar_named, job_id_of, version_of
from foliot.api.security.audit_log import IS_NOTED, NoteWithin, entry_of
from foliot.api.security.permissions import GuardedRoute, Within, namespace_of_caller, requires
from foliot.api.submitter import Submitter
from foliot.api.workflow_definitions import TURN, WorkflowDefinitions
from foliot.clock import give_way
from foliot.config import Config
from foliot.errors import Conflict, Invalid, Malformed, NotFound
from foliot.events import RunsSubmitted
from foliot.model.ids import new_id
from foliot.model.job import RecurringJob
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace, bare
from foliot.model.permissions import Permission
from foliot.model.run import NewRun, StoredRun
from foliot.model.states import RunState
from foliot.model.workflow import WORKFLOW_TASK
from foliot.store.hints import GATES_TOPIC, JOBS_TOPIC
from foliot.store.known_tasks import KnownTasks
from foliot.store.postgres import Transaction
from foliot.store.store import Store

PATHS = {"create_job": "/v1/jobs", "create_workflow": "/v1/workflows"}
"""A request is known again by its path as well."""
job_decoder = msgspec.json.Decoder(JobRequest)
batch_decoder: msgspec.json.Decoder[BatchRequest | list[JobRequest]] = msgspec.json.Decoder(BatchRequest | BatchJobs)


class CountedBatch(msgspec.Struct, frozen=True):
    """A batch whose jobs are counted, and not looked into."""

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


def _refuse_number(jobs: int) -> None:
    if not 1 <= jobs <= BATCH_MAX:
        raise Invalid(f"jobs: must be 1 to {BATCH_MAX}, not {jobs}", field="jobs")


def _refuse_too_many(body: bytes) -> None:
    """Before any is made: hundreds of thousands of empty ones fit into a body, and each takes half a kilobyte of
    memory."""
    try:
        batch = counting_decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # The decoder of jobs says why.
    _refuse_number(len(batch if isinstance(batch, list) else batch.jobs))


class JobRoutes:
    def __init__(
        self,
        *,
        store: Store,
        submitter: Submitter,
        known_tasks: KnownTasks,
        back_pressure: BackPressure,
        definitions: WorkflowDefinitions,
        config: Config,
    ) -> None:
        self._store = store
        self._submitter = submitter
        self._known_tasks = known_tasks
        self._back_pressure = back_pressure
        self._definitions = definitions
        self._config = config
        self._keyed = KeyedRequests(store=store)
        self.creating = APIRouter(tags=["jobs"], route_class=GuardedRoute)
        self.router = APIRouter(tags=["jobs"], route_class=GuardedRoute)
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
        """Creates a job: a one-off one now, after `delay_seconds` or at `schedule_time`; or a recurring one by `cron`
        or `every`."""
        body, namespace = await read(request, self._config.body_max_bytes), namespace_of_caller(request)
        asked = await decoded(body, job_decoder)
        key = idempotency_key_of(request, asked.idempotency_key)
        return await self.answer(request, "create_job", namespace, asked, key, body)

    async def answer(
        self, request: Request, action: str, namespace: Namespace, asked: JobRequest, key: str | None, body: bytes
    ) -> Response:
        """Whatever path the request took to become a job."""
        if key is not None:
            prepare, announce = partial(self._prepare, namespace, asked), partial(self._announce, namespace)
            note = NoteWithin(request, action, store=self._store)
            return await self._keyed.answer(namespace, key, PATHS[action], body, prepare, announce, note)
        made = await self.create(namespace, asked, request, action)
        return answered(made, 201 if made.created else 200)

    async def create(
        self, namespace: Namespace, asked: JobRequest, request: Request | None = None, action: str = "create_job"
    ) -> JobCreated | RecurringShown:
        """Stores what is asked for, together with the note on `request`; or finds the one whose unique key it has."""
        try:
            return await self._create(namespace, await self._complete(namespace, asked), request, action)
        except RecursionError:
            # How deep a payload may be depends on how deep its writer is already; nothing has been stored.
            raise Malformed("the body is nested too deeply", field=BODY) from None

    async def _create(
        self, namespace: Namespace, asked: JobRequest, request: Request | None, action: str
    ) -> JobCreated | RecurringShown:
        work: Callable[[Transaction], Awaitable[JobCreated | RecurringShown]]
        if asked.dependencies is not None:
            work = await self._prepare_dependent(namespace, asked)
        else:
            queue = await self._known_tasks.queue_of(namespace, asked.task_name())
            asked = self._known_tasks.with_declared(namespace, asked)
            if asked.is_recurring:
                work = partial(self._insert_recurring, await self._new_recurring(namespace, asked, queue))
            else:
                run = asked.new_run(new_id(), namespace=namespace, queue=queue)
                await self._back_pressure.check(namespace, bare(run.queue))
                if run.unique_key is None:
                    return created(run, await self._store_run(run, request, action))
                work = partial(self._submit_run, run)
        note = NoteWithin(request, action, store=self._store)
        made = await self._store.database.in_transaction("create_job", note.around(work))
        note.committed()
        # Also what was found: it may have been replaced by one that is due now.
        self._announce(namespace, made)
        return made

    async def _submit_run(self, run: NewRun, within: Transaction) -> JobCreated:
        (found,) = await self._store.submissions.submit_within(within, [run])
        return submitted(found)

    async def _store_run(self, run: NewRun, request: Request | None, action: str) -> StoredRun:
        entry = None if request is None else entry_of(request, action, 201, target=str(run.id))
        stored = await self._submitter.submit(run, entry)
        if request is not None and entry is not None:
            request.scope[IS_NOTED] = True
        return stored

    @requires(Permission.SUBMIT)
    async def create_batch(self, request: Request, namespace: Within) -> Response:
        """Creates up to 10,000 one-off jobs, all of them or none; what is wrong with one names its index."""
        body = await read(request, self._config.batch_max_bytes)
        asked = await decoded(body, batch_decoder, look_first=_refuse_too_many)
        key = idempotency_key_of(request, None if isinstance(asked, list) else asked.idempotency_key)
        note = NoteWithin(request, "create_batch", store=self._store)
        if key is not None:
            prepare, announce = partial(self._prepare_batch, namespace, asked), partial(self._announce, namespace)
            return await self._keyed.answer(namespace, key, "/v1/jobs/batch", body, prepare, announce, note)
        runs = await self._batch_of(namespace, asked)
        if any(run.unique_key is not None for run in runs):
            made = await self._store.database.in_transaction(
                "create_batch", note.around(partial(self._submit_batch, runs))
            )
        else:
            stored = await note.beside(lambda beside: self._store.runs.insert_runs(runs, beside=beside))
            made = BatchCreated([created(run, stored[run.id]) for run in runs], created=True)
        note.committed()
        self._announce(namespace, made)
        return answered(made, 201)

    @requires(Permission.SUBMIT, reading=True)
    async def check_job(self, request: Request, namespace: Within) -> Response:
        """Says what a job would become, or what is wrong with it, as creating it would. Nothing is stored."""
        asked = await decoded(await read(request, self._config.body_max_bytes), job_decoder)
        return answered(await self.check(namespace, asked))

    async def check(self, namespace: Namespace, asked: JobRequest) -> JobChecked:
        """Raises what `create` would raise, but for what depends on other jobs that are there by then: names and keys
        that are taken."""
        try:
            asked = await self._complete(namespace, asked)
            queue = await self._known_tasks.queue_of(namespace, asked.task_name())
            asked = self._known_tasks.with_declared(namespace, asked)
            is_recurring = asked.is_recurring
            if asked.dependencies is not None:
                found = await find_dependencies(self._store, namespace, asked.dependencies)
                is_recurring = is_recurring or bool(found.jobs)
                await self._prepare_dependent(namespace, asked)
            elif is_recurring:
                await self._new_recurring(namespace, asked, queue)
            else:
                asked.new_run(new_id(), namespace=namespace, queue=queue)
            payload, tags = asked.payload_tree() or {}, list(asked.tags or ())
        except RecursionError:
            raise Malformed("the body is nested too deeply", field=BODY) from None
        return JobChecked(
            asked.name, asked.task_name(), asked.queue or queue, asked.priority, payload, tags, is_recurring
        )

    @requires(Permission.VIEW)
    async def get_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Shows a job by id, or a recurring one by name too: where it stands, and how it ended. A recurring one has an
        ETag."""
        job_id = job_id_of(reference)
        job = await find_job(self._store, namespace, job_id, reference)
        if job is not None:
            return tagged(request, recurring(job), version_of(job))
        run = await find_run(self._store, namespace, job_id) if job_id else None
        if run is None:
            raise NotFound(f"there is no job {reference!r}")
        return answered(shown(run))

    async def _new_recurring(self, namespace: Namespace, asked: JobRequest, queue: str) -> RecurringJob:
        calendar = await calendar_named(self._store, namespace, asked.calendar)
        now = await self._store.jobs.database_now()
        return asked.new_job(new_id(), namespace=namespace, queue=queue, now=now, calendar=calendar)

    async def _insert_recurring(self, job: RecurringJob, within: Transaction) -> RecurringShown:
        if not await self._store.jobs.insert_job(job, within=within):
            raise Conflict(f"name: there is a job named {bare(job.name)!r} already")
        return recurring(job, created=True)

    async def _prepare(self, namespace: Namespace, asked: JobRequest) -> Work:
        """What is to be done under an idempotency key."""
        asked = await self._complete(namespace, asked)
        if asked.dependencies is not None:
            return await self._prepare_dependent(namespace, asked)
        queue = await self._known_tasks.queue_of(namespace, asked.task_name())
        asked = self._known_tasks.with_declared(namespace, asked)
        if asked.is_recurring:
            job = await self._new_recurring(namespace, asked, queue)
            return partial(self._insert_recurring, job)
        run = asked.new_run(new_id(), namespace=namespace, queue=queue)
        await self._back_pressure.check(namespace, bare(run.queue))
        return partial(self._submit_run, run)

    async def _prepare_dependent(
        self, namespace: Namespace, asked: JobRequest
    ) -> Callable[[Transaction], Awaitable[JobCreated | RecurringShown]]:
        """A job that depends on others: recurring if those are; else a single run."""
        found = await find_dependencies(self._store, namespace, asked.dependencies or ())
        queue = await self._known_tasks.queue_of(namespace, asked.task_name())
        asked = self._known_tasks.with_declared(namespace, asked)
        if found.jobs or asked.is_recurring:
            if found.run_ids:
                raise Invalid(f"dependencies: {str(found.run_ids[0])!r} is no recurring job", field="dependencies")
            calendar = await calendar_named(self._store, namespace, asked.calendar)
            names = tuple(job.name for job in found.jobs)
            now = await self._store.jobs.database_now()
            job = asked.new_job(new_id(), namespace=namespace, queue=queue, now=now, calendar=calendar, after=names)

            async def keep_job(within: Transaction) -> RecurringShown:
                kept = await self._insert_recurring(job, within)
                await self._store.jobs.insert_job_dependencies(
                    job, [upstream.id for upstream in found.jobs], within=within
                )
                return kept

            return keep_job
        if asked.unique is not None or asked.signal is not None:
            raise Invalid(
                "dependencies: can't be had together with unique or signal; make it a workflow", field="dependencies"
            )
        run = asked.new_run(new_id(), namespace=namespace, queue=queue)
        await self._back_pressure.check(namespace, bare(run.queue))

        async def keep_run(within: Transaction) -> JobCreated:
            await self._store.workflows.insert_dependent_within(within, run, found.run_ids)
            stored = await self._store.runs.find_runs([run.id], within=within)
            return created(run, stored[run.id])

        return keep_run

    async def _prepare_batch(self, namespace: Namespace, asked: BatchRequest | list[JobRequest]) -> Work:
        return partial(self._submit_batch, await self._batch_of(namespace, asked))

    async def _submit_batch(self, runs: Sequence[NewRun], within: Transaction) -> BatchCreated:
        found = await self._store.submissions.submit_within(within, runs)
        return BatchCreated([submitted(run) for run in found], created=True)

    async def _batch_of(self, namespace: Namespace, asked: BatchRequest | list[JobRequest]) -> list[NewRun]:
        """Raises `Invalid` with the index of the item that is at fault."""
        place, jobs = ("", asked) if isinstance(asked, list) else ("jobs", asked.jobs)
        _refuse_number(len(jobs))
        runs = []
        for index, job in enumerate(jobs):
            if index % TURN == TURN - 1:
                await give_way()
            try:
                runs.append(await self._batch_item(namespace, job))
            except Invalid as error:
                field = f"{place}[{index}].{error.field}"
                raise type(error)(f"{place}[{index}].{error.detail}", field=field) from None
        return runs

    async def _complete(self, namespace: Namespace, asked: JobRequest) -> JobRequest:
        """A job that is a workflow is checked through and through before it is stored."""
        await self._known_tasks.refuse_disabled_items(namespace, asked.task_name(), asked.payload)
        if asked.task_name() != WORKFLOW_TASK:
            return asked
        return msgspec.structs.replace(asked, payload=await self._definitions.of_payload(namespace, asked.payload))

    async def _batch_item(self, namespace: Namespace, job: JobRequest) -> NewRun:
        job = await self._complete(namespace, job)
        queue = await self._known_tasks.queue_of(namespace, job.task_name())
        job = self._known_tasks.with_declared(namespace, job)
        if job.is_recurring:
            raise Invalid("cron: a batch has one-off jobs only", field="cron")
        if job.dependencies is not None:
            raise Invalid("dependencies: not in a batch; submit it by itself, or a workflow", field="dependencies")
        if job.idempotency_key is not None:
            raise Invalid("idempotency_key: is for the whole batch", field="idempotency_key")
        run = job.new_run(new_id(), namespace=namespace, queue=queue)
        await self._back_pressure.check(namespace, bare(run.queue))
        return run

    def _announce(self, namespace: Namespace, made: msgspec.Struct) -> None:
        """After it is stored for good: whoever is woken before finds nothing."""
        if isinstance(made, RecurringShown):
            self._store.hints.send([JOBS_TOPIC])
            return
        runs = made.items if isinstance(made, BatchCreated) else [made] if isinstance(made, JobCreated) else []
        self._store.hints.send({namespace.qualified(run.queue) for run in runs if run.state == RunState.READY})
        if any(run.state == RunState.HELD for run in runs):
            self._store.hints.send([GATES_TOPIC])
        if count := sum(run.created for run in runs):
            self._store.events.emit(RunsSubmitted(count))
