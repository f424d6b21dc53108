"""Creates the job that a request asks for, with its audit entry, and answers with it.

For every route that creates jobs: `/v1/jobs`, `/v1/workflows` with a schedule, and the lab's `/jobs`.
"""

from __future__ import annotations

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.schemas import (
    BatchCreated,
    JobChecked,
    JobCreated,
    RecurringShown,
    created,
    recurring,
    submitted,
)
from foliot.api.requests.body_limits import BODY
from foliot.api.requests.idempotency import IdempotentRequests, Work, answered
from foliot.api.requests.traces import in_trace_of
from foliot.api.security.audit_log import IS_NOTED, NoteWithin, entry_of
from foliot.api.security.permissions import actor_of
from foliot.errors import Malformed
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.model.run import NewRun, StoredRun, SubmittedRun
from foliot.model.states import RunState
from foliot.store.hints import JOBS_TOPIC
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.submission.admission import Admission
from foliot.submission.announcement import announce_runs
from foliot.submission.storage import Accepted, store_within
from foliot.submission.submitter import Submitter

PATHS = {"create_job": "/v1/jobs", "create_workflow": "/v1/workflows"}
"""The path is part of the fingerprint of a request with an idempotency key."""


class JobCreation:
    def __init__(self, *, store: Store, submitter: Submitter, admission: Admission) -> None:
        self._store = store
        self._submitter = submitter
        self._admission = admission
        self._idempotent_requests = IdempotentRequests(store=store)

    async def answer(
        self, request: Request, action: str, namespace: Namespace, job: JobRequest, key: str | None, body: bytes
    ) -> Response:
        """Creates the job once for an idempotency key."""
        if key is not None:
            job = in_trace_of(request, job)
            prepare = partial(self._prepare, namespace, job, actor_of(request))
            announce = partial(self.announce, namespace)
            note = NoteWithin(request, action, store=self._store)
            return await self._idempotent_requests.answer(namespace, key, PATHS[action], body, prepare, announce, note)
        made = await self.create(namespace, job, request, action)
        return answered(made, 201 if made.created else 200)

    async def create(
        self, namespace: Namespace, job: JobRequest, request: Request, action: str = "create_job"
    ) -> JobCreated | RecurringShown:
        """Stores the job with the audit entry of `request`, or finds the run that has its unique key."""
        try:
            accepted = await self._admission.accept(namespace, in_trace_of(request, job))
            if isinstance(accepted, NewRun) and accepted.unique_key is None:
                return created(accepted, await self._store_run(accepted, request, action))
            note = NoteWithin(request, action, store=self._store)
            work = note.around(partial(self._store_within, accepted, actor_of(request)))
            made = await self._store.database.in_transaction("create_job", work)
        except RecursionError:
            # How deep a payload may be depends on how deep its writer is already. Nothing has been stored.
            raise Malformed("the body is nested too deeply", field=BODY) from None
        note.committed()
        # A run that was found may have been replaced by one that is due now.
        self.announce(namespace, made)
        return made

    async def check(self, namespace: Namespace, job: JobRequest) -> JobChecked:
        """Raises what `create` would raise, except for names and keys that are taken."""
        try:
            checked = await self._admission.check(namespace, job)
            job = checked.job
            payload, tags = job.payload_tree() or {}, list(job.tags or ())
        except RecursionError:
            raise Malformed("the body is nested too deeply", field=BODY) from None
        queue = job.queue or checked.queue
        return JobChecked(job.name, job.task_name(), queue, job.priority, payload, tags, checked.is_recurring)

    def announce(self, namespace: Namespace, made: msgspec.Struct) -> None:
        """Wakes workers or schedulers. Call it after the commit."""
        if isinstance(made, RecurringShown):
            self._store.hints.send([JOBS_TOPIC])
            return
        runs = made.items if isinstance(made, BatchCreated) else [made] if isinstance(made, JobCreated) else []
        stored = [(namespace.qualified(run.queue), RunState(run.state)) for run in runs]
        announce_runs(self._store, stored, sum(run.created for run in runs))

    async def _store_run(self, run: NewRun, request: Request, action: str) -> StoredRun:
        entry = entry_of(request, action, 201, target=str(run.id))
        stored = await self._submitter.submit(run, entry)
        if entry is not None:
            request.scope[IS_NOTED] = True
        return stored

    async def _prepare(self, namespace: Namespace, job: JobRequest, actor: str) -> Work:
        return partial(self._store_within, await self._admission.accept(namespace, job), actor)

    async def _store_within(self, accepted: Accepted, actor: str, within: Transaction) -> JobCreated | RecurringShown:
        made = await store_within(self._store, accepted, within, actor=actor)
        return submitted(made) if isinstance(made, SubmittedRun) else recurring(made, created=True)
