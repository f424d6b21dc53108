"""The versions of a recurring job: who changed what and when. Restores one, also of a deleted job."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import (
    RecurringShown,
    bare_schedule,
    metadata_of,
    options_shown,
    recurring,
    tags_of,
)
from foliot.api.requests.bodies import decoded
from foliot.api.requests.body_limits import read
from foliot.api.requests.etags import Version, if_match_of, tagged
from foliot.api.requests.pages import at_most, page_size
from foliot.api.security.permissions import Calling, PermissionRoute, Within, requires
from foliot.errors import Conflict, NotFound
from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.model.schedule_words import in_words
from foliot.store.job_versions import JobVersion
from foliot.store.lookup import find_job, get_job, job_id_of, unknown_job
from foliot.store.store import Store
from foliot.submission.job_restoring import JobRestoring

RESTORE_ATTEMPTS = 10
NUMBER_MAX = 2**63 - 1


class JobVersionShown(msgspec.Struct, frozen=True):
    version: int
    made_at: datetime
    made_by: str | None
    """The name of the token, or `local`. Null if a worker made it, from a job that is declared in code."""
    deleted_at: datetime | None
    """If set, the job was deleted then, when this version was current."""
    deleted_by: str | None
    task: str
    queue: str
    priority: int
    schedule: Any
    schedule_words: str
    payload: Any
    options: Any
    metadata: Any
    tags: list[str]


class JobVersionPage(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    is_deleted: bool
    items: list[JobVersionShown]
    """The latest first."""
    next: int | None
    """Pass it as `before` to get the next page."""


class DeletedJobShown(msgspec.Struct, frozen=True):
    id: UUID
    name: str
    version: int
    schedule_words: str
    deleted_at: datetime
    deleted_by: str | None


class DeletedJobList(msgspec.Struct, frozen=True):
    items: list[DeletedJobShown]
    """The one deleted last comes first."""


class RestoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Annotated[int, Meta(ge=1, lt=NUMBER_MAX)] | None = None
    """The version to restore; that of a deleted job is its last one by default."""


restore_decoder = msgspec.json.Decoder(RestoreRequest)
EXAMPLES = {"the first version": {"version": 1}}


class JobVersionRoutes:
    def __init__(self, *, store: Store, restoring: JobRestoring, body_max_bytes: int) -> None:
        self._store = store
        self._restoring = restoring
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)
        one, problems = "/v1/jobs/{reference}", (404, 409, 422, 503)
        lists = described(200, JobVersionPage, problems=(404, 422))
        restores = described(
            200,
            RecurringShown,
            body=RestoreRequest,
            examples=EXAMPLES,
            problems=problems,
            is_body_optional=True,
            matched=True,
        )
        add = self.router.add_api_route
        add("/v1/deleted-jobs", self.list_deleted_jobs, methods=["GET"], openapi_extra=described(200, DeletedJobList))
        add(f"{one}/versions", self.list_job_versions, methods=["GET"], openapi_extra=lists)
        add(f"{one}/restore", self.restore_job, methods=["POST"], openapi_extra=restores)

    @requires(Permission.VIEW)
    async def list_deleted_jobs(self, namespace: Within) -> Response:
        """Lists recurring jobs that were deleted recently and can be restored. They are kept for as long as history."""
        found = await self._store.job_versions.list_deleted_jobs(namespace, page_size(50))
        return json_response(
            DeletedJobList([
                DeletedJobShown(
                    job.id, bare(job.name), job.version, in_words(job.schedule, str(job.id)), job.deleted_at,
                    job.deleted_by,
                )
                for job in found
            ])
        )  # fmt: skip

    @requires(Permission.VIEW)
    async def list_job_versions(
        self, reference: str, namespace: Within, before: int | None = None, limit: int = 50
    ) -> Response:
        """Lists the versions of a recurring job, or of a deleted one: who changed what and when. The last 200 are
        kept."""
        job = await find_job(self._store, namespace, job_id_of(reference), reference)
        job_id = job.id if job is not None else await self._deleted(namespace, reference)
        if before is not None:
            at_most(before, NUMBER_MAX, "before")
        found = await self._store.job_versions.list_versions(job_id, before, page_size(limit) + 1)
        name = job.name if job is not None else found[0].name if found else reference
        following = found[limit - 1].number if len(found) > limit else None
        shown = [_shown(version) for version in found[:limit]]
        return json_response(JobVersionPage(job_id, bare(name), job is None, shown, following))

    @requires(Permission.OPERATE)
    async def restore_job(self, reference: str, request: Request, caller: Calling) -> Response:
        """Makes an earlier version of a recurring job current, as a new version, or makes a deleted job again, which
        then has its runs and ticks again. A job that was paused when it was deleted is active."""
        asked = await decoded(await read(request, self._body_max_bytes) or b"{}", restore_decoder)
        if_match, namespace = if_match_of(request), caller.namespace
        for _ in range(RESTORE_ATTEMPTS):
            job = await find_job(self._store, namespace, job_id_of(reference), reference)
            if if_match is not None:
                if_match.check(f"job {reference!r}", None if job is None else Version(job.version, job.created_at))
            if job is None:
                await self._recreate(namespace, reference, asked.version, caller.name)
                break
            number = job.version if asked.version is None else asked.version
            version = await self._version(job.id, number)
            # A job that fires every second may do so between the read and the write.
            if version.number == job.version or await self._restoring.restore(namespace, job, version, caller.name):
                break
        else:
            raise Conflict(f"the job {reference!r} was changed or fired at the same time; GET it again")
        restored: RecurringJob = await get_job(self._store, namespace, reference)
        return tagged(request, recurring(restored), Version(restored.version, restored.created_at))

    async def _recreate(self, namespace: Namespace, reference: str, number: int | None, actor: str) -> None:
        job_id = await self._deleted(namespace, reference)
        (last,) = await self._store.job_versions.list_versions(job_id, None, 1)
        version = last if number is None else await self._version(job_id, number)
        await self._restoring.recreate(namespace, last, version, actor)

    async def _version(self, job_id: UUID, number: int) -> JobVersion:
        version = await self._store.job_versions.get_version(job_id, number)
        if version is None:
            raise NotFound(f"version: the job has no version {number}; the last 200 are kept")
        return version

    async def _deleted(self, namespace: Namespace, reference: str) -> UUID:
        """Raises `NotFound`."""
        job_id = await self._store.job_versions.find_deleted_job(job_id_of(reference), namespace.qualified(reference))
        found = [] if job_id is None else await self._store.job_versions.list_versions(job_id, None, 1)
        if not found or not namespace.owns(found[0].name):
            raise unknown_job(reference)
        return found[0].job_id


def _shown(version: JobVersion) -> JobVersionShown:
    schedule = bare_schedule(version.schedule)
    return JobVersionShown(
        version=version.number,
        made_at=version.made_at,
        made_by=version.made_by,
        deleted_at=version.deleted_at,
        deleted_by=version.deleted_by,
        task=bare(version.task),
        queue=bare(version.queue),
        priority=version.priority,
        schedule=msgspec.to_builtins(schedule),
        schedule_words=in_words(schedule, str(version.job_id)),
        payload=version.payload or {},
        options=options_shown(version.options),
        metadata=metadata_of(version.options),
        tags=tags_of(version.options),
    )
