"""`/v1/jobs/trigger` and `/v1/jobs/delete`: triggers and deletes recurring jobs by a filter, after a count."""

from __future__ import annotations

from functools import partial
from typing import ClassVar
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.job_selection import IS_COUNTED, GroupRequest, matched_jobs, refuse_empty
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.idempotency import IdempotentRequests, Work, answered, idempotency_key_of
from foliot.api.security.audit_log import NoteWithin
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Conflict, Invalid
from foliot.events import RunsSubmitted
from foliot.model.field_rules import Rule
from foliot.model.idempotency import IdempotencyKey
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.roles import Permission
from foliot.model.schedule import Neighbours
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC
from foliot.store.lookup import find_job
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.triggers.base import to_instant


class GroupActionRequest(GroupRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Selects jobs as pausing does. `expected` is required, except for a dry run."""

    idempotency_key: IdempotencyKey | None = None

    RULES: ClassVar[tuple[Rule, ...]] = (*GroupRequest.RULES, IS_COUNTED)


class GroupTriggered(msgspec.Struct, frozen=True):
    count: int
    names: list[str]
    runs: list[UUID]
    """One run for each name; none in a dry run."""
    dry_run: bool
    created: bool


class GroupDeleted(msgspec.Struct, frozen=True):
    count: int
    names: list[str]
    kept: list[str]
    """The jobs that were kept because other jobs depend on them."""
    dry_run: bool


decoder = msgspec.json.Decoder(GroupActionRequest)
TRIGGERS = {"after a dry run": {"name": "nightly-report", "expected": 1}}
EXAMPLES = {"count first": {"name": "report-*", "dry_run": True}}


class JobGroupActionRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._body_max_bytes = body_max_bytes
        self._idempotent_requests = IdempotentRequests(store=store)
        self.router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)
        problems = (400, 409, 413, 415, 422, 503)
        triggers = described(
            201, GroupTriggered, body=GroupActionRequest, examples=TRIGGERS, problems=problems, repeated=True
        )
        deletes = described(200, GroupDeleted, body=GroupActionRequest, examples=EXAMPLES, problems=problems)
        self.router.add_api_route("/v1/jobs/trigger", self.trigger_jobs, methods=["POST"], openapi_extra=triggers)
        self.router.add_api_route("/v1/jobs/delete", self.delete_jobs, methods=["POST"], openapi_extra=deletes)

    @requires(Permission.OPERATE)
    async def trigger_jobs(self, request: Request, namespace: Within) -> Response:
        """Runs the matching recurring jobs once now, paused or not, outside their schedules: all of them or none."""
        body = await read(request, self._body_max_bytes)
        asked = checked(await decoded(body, decoder))
        key = idempotency_key_of(request, asked.idempotency_key)
        if asked.dry_run:
            names = [name for _, name in await matched_jobs(self._store, namespace, asked, is_paused=None)]
            return answered(GroupTriggered(len(names), names, [], dry_run=True, created=False))
        note = NoteWithin(request, "trigger_jobs", store=self._store)
        if key is not None:
            prepare = partial(self._prepare, namespace, asked)
            return await self._idempotent_requests.answer(
                namespace, key, "/v1/jobs/trigger", body, prepare, self._announce, note
            )
        made = await self._store.database.in_transaction(
            "trigger_jobs", note.around(await self._prepare(namespace, asked))
        )
        note.committed()
        self._announce(made)
        return answered(made, 201)

    @requires(Permission.OPERATE)
    async def delete_jobs(self, request: Request, caller: Calling) -> Response:
        """Deletes the matching recurring jobs, paused or not, except those that other jobs depend on. Their runs
        stay in history."""
        asked = checked(await decoded(await read(request, self._body_max_bytes), decoder))
        # A repeated delete finds nothing left to delete, so the key is only checked.
        idempotency_key_of(request, asked.idempotency_key)
        matched = await matched_jobs(self._store, caller.namespace, asked, is_paused=None)
        left = {} if asked.dry_run else dict(matched)
        # A job can be deleted once its dependents are gone, so repeat while any was deleted.
        while gone := [job_id for job_id in left if await self._is_deleted(job_id, caller.name)]:
            for job_id in gone:
                del left[job_id]
        names = [name for job_id, name in matched if job_id not in left]
        return answered(GroupDeleted(len(names), names, list(left.values()), asked.dry_run))

    async def _prepare(self, namespace: Namespace, asked: GroupActionRequest) -> Work:
        matched = {new_id(): job for job in await matched_jobs(self._store, namespace, asked, is_paused=None)}
        now = to_instant(await self._store.jobs.database_now())
        between = {job_id: await self._neighbours_of(namespace, job_id, now) for job_id, _ in matched.values()}

        async def work(within: Transaction) -> GroupTriggered:
            for run_id, (job_id, _) in matched.items():
                await self._store.jobs.insert_triggered_run(run_id, job_id, between=between[job_id], within=within)
            names = [name for _, name in matched.values()]
            return GroupTriggered(len(names), names, list(matched), dry_run=False, created=True)

        return work

    async def _neighbours_of(self, namespace: Namespace, job_id: UUID, now: int) -> Neighbours:
        job = await find_job(self._store, namespace, job_id, "")
        return (None, None) if job is None else job.timetable.around(now)

    def _announce(self, made: msgspec.Struct) -> None:
        if isinstance(made, GroupTriggered):
            self._store.hints.send([ALL_QUEUES_TOPIC, GATES_TOPIC])
            self._store.events.emit(RunsSubmitted(made.count))

    async def _is_deleted(self, job_id: UUID, actor: str) -> bool:
        try:
            await self._store.jobs.delete_job(job_id, actor=actor)
        except Conflict:
            return False
        return True


def checked(asked: GroupActionRequest) -> GroupActionRequest:
    refuse_empty(asked)
    if asked.expected is None and not asked.dry_run:
        raise Invalid("expected: request with dry_run first, and give its count", field="expected")
    return asked
