"""`/v1/jobs/pause` and `/v1/jobs/resume`: pauses and resumes recurring jobs by a filter."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeVar
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.job_selection import GroupRequest, matched_jobs, refuse_empty
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.model.job import resumed
from foliot.model.job_request import LATEST
from foliot.model.roles import Permission
from foliot.store.hints import JOBS_TOPIC
from foliot.store.lookup import find_job
from foliot.store.store import Store


class GroupPauseRequest(GroupRequest, frozen=True, forbid_unknown_fields=True, kw_only=True):
    reason: Annotated[str, Meta(max_length=1000)] | None = None
    until: Annotated[datetime, Meta(tz=True, description="In the future.")] | None = None


class GroupAnswer(msgspec.Struct, frozen=True):
    count: int
    names: list[str]
    dry_run: bool


G = TypeVar("G", bound=GroupRequest)
pause_decoder = msgspec.json.Decoder(GroupPauseRequest)
resume_decoder = msgspec.json.Decoder(GroupRequest)
PAUSES = {
    "dry run": {"name": "report-*", "dry_run": True},
    "all jobs of a queue": {"queue": "mail", "reason": "maintenance"},
}
RESUMES = {"all jobs of a task": {"task": "send_invoice"}}


class JobGroupRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._jobs = store.jobs
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)
        pauses = described(200, GroupAnswer, body=GroupPauseRequest, examples=PAUSES, problems=(409, 422, 503))
        resumes = described(200, GroupAnswer, body=GroupRequest, examples=RESUMES, problems=(409, 422, 503))
        self.router.add_api_route("/v1/jobs/pause", self.pause_jobs, methods=["POST"], openapi_extra=pauses)
        self.router.add_api_route("/v1/jobs/resume", self.resume_jobs, methods=["POST"], openapi_extra=resumes)

    @requires(Permission.OPERATE)
    async def pause_jobs(self, request: Request, caller: Calling) -> Response:
        """Pauses the matching recurring jobs that are not paused."""
        asked = await self._asked(request, pause_decoder)
        if asked.until is not None and not await self._jobs.database_now() < asked.until < LATEST:
            raise Invalid(f"until: must be in the future and before the year {LATEST.year}", field="until")
        matched = await matched_jobs(self._store, caller.namespace, asked, is_paused=False)
        if not asked.dry_run:
            for job_id, _ in matched:
                await self._jobs.pause_job(job_id, asked.reason, asked.until, actor=caller.name)
        return _answer(matched, asked)

    @requires(Permission.OPERATE)
    async def resume_jobs(self, request: Request, namespace: Within) -> Response:
        """Resumes the matching jobs that are paused, each with its next tick from now."""
        asked = await self._asked(request, resume_decoder)
        matched = await matched_jobs(self._store, namespace, asked, is_paused=True)
        if not asked.dry_run:
            for job_id, name in matched:
                # A job that somebody else resumed, changed or deleted meanwhile stays that way.
                job = await find_job(self._store, namespace, job_id, name)
                if job is not None and job.paused_at is not None:
                    await self._jobs.resume_job(*resumed(job, await self._jobs.database_now()))
            self._store.hints.send([JOBS_TOPIC])
        return _answer(matched, asked)

    async def _asked(self, request: Request, decoder: msgspec.json.Decoder[G]) -> G:
        asked = await decoded(await read(request, self._body_max_bytes), decoder)
        refuse_empty(asked)
        return asked


def _answer(matched: list[tuple[UUID, str]], asked: GroupRequest) -> Response:
    answer = GroupAnswer(len(matched), [name for _, name in matched], asked.dry_run)
    return Response(msgspec.json.encode(answer), media_type="application/json")
