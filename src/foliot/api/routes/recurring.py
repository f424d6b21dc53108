"""Recurring jobs under `/v1/jobs`: lists, changes, deletes, pauses and resumes them."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import PauseRequest, RecurringShown, recurring
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.etags import IfMatch, Version, if_match_of, tagged
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import text_of
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Conflict, Invalid, PreconditionFailed
from foliot.model.job import RecurringJob, resumed
from foliot.model.job_request import LATEST, JobRequest
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.hints import JOBS_TOPIC
from foliot.store.lookup import get_job
from foliot.store.store import Store
from foliot.submission.job_changes import CHANGEABLE, JobChanges

# The tagged jobs that a page reads at most to find those with one tag.
SCAN_MAX = 10_000
CHANGE_ATTEMPTS = 10
change_decoder: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
request_decoder = msgspec.json.Decoder(JobRequest)
pause_decoder = msgspec.json.Decoder(PauseRequest)


# Only for the OpenAPI document: the fields of a job that can be changed.
JobChange: Any = msgspec.defstruct(
    "JobChange",
    [
        (field.name, field.type, msgspec.field(default=UNSET))
        for field in msgspec.structs.fields(JobRequest)
        if field.name in CHANGEABLE
    ],
    frozen=True,
    forbid_unknown_fields=True,
)
PAUSES = {
    "for a while": {"reason": "maintenance of the warehouse", "until": "2099-01-01T00:00:00Z"},
    "until resumed": {},
}
CHANGES = {
    "change the schedule": {"cron": "0 4 * * *", "timezone": "Europe/Zurich"},
    "change the arguments": {"payload": {"customer_id": 8}, "retries": 5},
}


class RecurringPage(msgspec.Struct, frozen=True):
    items: list[RecurringShown]
    next: str | None
    """Pass it as `after` to get the next page."""


class RecurringRoutes:
    def __init__(self, *, store: Store, changes: JobChanges, body_max_bytes: int) -> None:
        self._store = store
        self._changes = changes
        self._jobs = store.jobs
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)
        one = "/v1/jobs/{reference}"
        resumes = described(200, RecurringShown, problems=(404, 409, 422, 503), matched=True)
        edits = described(200, RecurringShown, body=JobChange, examples=CHANGES, problems=(404, 409, 503), matched=True)
        deletes = described(204, problems=(404, 409, 422), matched=True)
        pauses = described(
            200,
            RecurringShown,
            body=PauseRequest,
            examples=PAUSES,
            problems=(404, 503),
            is_body_optional=True,
            matched=True,
        )
        add = self.router.add_api_route
        add("/v1/jobs", self.list_jobs, methods=["GET"], openapi_extra=described(200, RecurringPage, problems=(422,)))
        add(one, self.change_job, methods=["PATCH"], openapi_extra=edits)
        add(one, self.delete_job, methods=["DELETE"], status_code=204, openapi_extra=deletes)
        add(f"{one}/pause", self.pause_job, methods=["POST"], openapi_extra=pauses)
        add(f"{one}/resume", self.resume_job, methods=["POST"], openapi_extra=resumes)

    @requires(Permission.VIEW)
    async def list_jobs(
        self,
        namespace: Within,
        tag: str = "",
        after: str = "",
        limit: int = 50,
        paused: bool = False,
        calendar: str = "",
    ) -> Response:
        """Lists recurring jobs by name: all, those with a tag, the paused ones, or those that use a calendar. `after`
        is the `next` of the previous page."""
        if "\0" in after:
            raise Invalid("after: a name can't contain the character NUL (%00)", field="after")
        wanted, used = text_of(tag, "tag"), text_of(calendar, "calendar")
        if used is not None:
            if paused or wanted is not None:
                raise Invalid("calendar: can't be combined with tag or paused", field="calendar")
            name = namespace.qualified(used)
            jobs = await self._jobs.list_calendar_jobs(name, namespace.qualified(after), page_size(limit))
            following = bare(jobs[-1].name) if len(jobs) == limit else None
            return _answer(RecurringPage([recurring(job) for job in jobs], following))
        if paused or wanted is not None:
            page = (
                await self._jobs.list_paused_jobs(namespace, wanted, after, limit=page_size(limit), scan=SCAN_MAX)
                if paused or wanted is None
                else await self._jobs.list_tagged_jobs(namespace, wanted, after, limit=page_size(limit), scan=SCAN_MAX)
            )
            return _answer(
                RecurringPage([recurring(job) for job in page.items], bare(page.following) if page.following else None)
            )
        jobs = await self._jobs.list_jobs(namespace, after, page_size(limit))
        following = bare(jobs[-1].name) if len(jobs) == limit else None
        return _answer(RecurringPage([recurring(job) for job in jobs], following))

    @requires(Permission.OPERATE)
    async def change_job(self, reference: str, request: Request, caller: Calling) -> Response:
        """Changes a recurring job. Earlier ticks keep their outcome."""
        body = await read(request, self._body_max_bytes)
        given = set((await decoded(body, change_decoder)).keys())
        if unknown := sorted(given - CHANGEABLE):
            raise Invalid(
                f"{unknown[0]}: can't be changed; these fields can: {', '.join(sorted(CHANGEABLE))}", field=unknown[0]
            )
        asked, if_match = await decoded(body, request_decoder), if_match_of(request)
        namespace = caller.namespace
        for _ in range(CHANGE_ATTEMPTS):
            job = await self._meant(namespace, reference, if_match)
            # A job that fires every second may do so between the read and the write. Then the change is applied to its
            # new state.
            if await self._changes.apply(namespace, job, asked, given, caller.name):
                return await self._shown(namespace, reference, request)
        raise _changed_meanwhile(reference)

    @requires(Permission.OPERATE)
    async def delete_job(self, reference: str, request: Request, caller: Calling) -> Response:
        """Deletes a recurring job. Its runs stay in history."""
        if_match = if_match_of(request)
        job = await self._meant(caller.namespace, reference, if_match)
        version = None if if_match is None else job.version
        is_deleted = await self._jobs.delete_job(job.id, version, actor=caller.name)
        if not is_deleted and if_match is not None:
            raise _no_longer(reference)
        return Response(status_code=204)

    @requires(Permission.OPERATE)
    async def pause_job(self, reference: str, request: Request, caller: Calling) -> Response:
        """Pauses a recurring job. Ticks during the pause are recorded as missed, and not caught up."""
        asked = await decoded(await read(request, self._body_max_bytes) or b"{}", pause_decoder)
        if asked.until is not None and not await self._jobs.database_now() < asked.until < LATEST:
            raise Invalid(f"until: must be in the future and before the year {LATEST.year}", field="until")
        if_match = if_match_of(request)
        job = await self._meant(caller.namespace, reference, if_match)
        version = None if if_match is None else job.version
        is_paused = await self._jobs.pause_job(job.id, asked.reason, asked.until, version, caller.name)
        if not is_paused and if_match is not None:
            raise _no_longer(reference)
        return await self._shown(caller.namespace, reference, request)

    @requires(Permission.OPERATE)
    async def resume_job(self, reference: str, request: Request, namespace: Within) -> Response:
        """Resumes a recurring job with its next tick from now."""
        if_match = if_match_of(request)
        job = await self._meant(namespace, reference, if_match)
        if job.paused_at is not None and not await self._jobs.resume_job(
            *resumed(job, await self._jobs.database_now())
        ):
            job = await self._meant(namespace, reference, if_match)
            if job.paused_at is not None:
                raise _changed_meanwhile(reference)
        self._store.hints.send([JOBS_TOPIC])
        return await self._shown(namespace, reference, request)

    async def _meant(self, namespace: Namespace, reference: str, if_match: IfMatch | None) -> RecurringJob:
        """The job, if it matches the request's If-Match. Writes are fenced by its version."""
        job = await get_job(self._store, namespace, reference)
        if if_match is not None:
            if_match.check(f"job {reference!r}", version_of(job))
        return job

    async def _shown(self, namespace: Namespace, reference: str, request: Request) -> Response:
        job = await get_job(self._store, namespace, reference)
        return tagged(request, recurring(job), version_of(job))


def _answer(body: object, *, status: int = 200) -> Response:
    return json_response(body, status)


def version_of(job: RecurringJob) -> Version:
    return Version(job.version, job.created_at)


def _no_longer(reference: str) -> PreconditionFailed:
    return PreconditionFailed(f"the job {reference!r} was changed or deleted at the same time; GET it again")


def _changed_meanwhile(reference: str) -> Conflict:
    return Conflict(f"the job {reference!r} was changed or fired at the same time; GET it again")
