"""`/v1/jobs/pause` and `/v1/jobs/resume`: several recurring jobs at once, by a filter; how many they are can be asked
first."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, ClassVar, TypeVar
from uuid import UUID

import msgspec
from fastapi import APIRouter
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.lookup import find_job
from foliot.api.openapi.operations import described
from foliot.api.requests.bodies import decoded, read
from foliot.api.security.permissions import GuardedRoute, Within, requires
from foliot.errors import Conflict, Invalid
from foliot.model.field_rules import Rule, any_given
from foliot.model.job import resumed
from foliot.model.job_request import LATEST
from foliot.model.namespace import Namespace, bare
from foliot.model.permissions import Permission
from foliot.model.run import Tag
from foliot.model.run_request import Name
from foliot.store.hints import JOBS_TOPIC
from foliot.store.store import Store

MOST = 1000
COUNT_MAX = 9_007_199_254_740_991
LIKE_WORDS = {"*": "%", "?": "_", "%": r"\%", "_": r"\_", "\\": r"\\"}


class GroupRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """At least one of the first four says which jobs. `dry_run` changes nothing and says how many they are; `expected`
    is that number."""

    name: (
        Annotated[str, Meta(min_length=1, max_length=200, description="A pattern: * is anything, ? is one character.")]
        | None
    ) = None
    task: Name | None = None
    queue: Name | None = None
    tag: Tag | None = None
    dry_run: bool = False
    expected: (
        Annotated[
            int, Meta(ge=0, le=COUNT_MAX, description="With another number of jobs than this, nothing is done: 409.")
        ]
        | None
    ) = None

    RULES: ClassVar[tuple[Rule, ...]] = (any_given("name", "task", "queue", "tag"),)


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
    "how many it would be": {"name": "report-*", "dry_run": True},
    "those of a queue": {"queue": "mail", "reason": "maintenance"},
}
RESUMES = {"those of a task": {"task": "send_invoice"}}


class JobGroupRoutes:
    def __init__(self, *, store: Store, body_max_bytes: int) -> None:
        self._store = store
        self._jobs = store.jobs
        self._body_max_bytes = body_max_bytes
        self.router = APIRouter(tags=["recurring jobs"], route_class=GuardedRoute)
        pauses = described(200, GroupAnswer, body=GroupPauseRequest, examples=PAUSES, problems=(409, 422, 503))
        resumes = described(200, GroupAnswer, body=GroupRequest, examples=RESUMES, problems=(409, 422, 503))
        self.router.add_api_route("/v1/jobs/pause", self.pause_jobs, methods=["POST"], openapi_extra=pauses)
        self.router.add_api_route("/v1/jobs/resume", self.resume_jobs, methods=["POST"], openapi_extra=resumes)

    @requires(Permission.OPERATE)
    async def pause_jobs(self, request: Request, namespace: Within) -> Response:
        """Pauses the recurring jobs that fit and are not paused."""
        asked = await self._asked(request, pause_decoder)
        if asked.until is not None and not await self._jobs.database_now() < asked.until < LATEST:
            raise Invalid(f"until: must be in the future and before the year {LATEST.year}", field="until")
        matched = await matched_jobs(self._store, namespace, asked, is_paused=False)
        if not asked.dry_run:
            for job_id, _ in matched:
                await self._jobs.pause_job(job_id, asked.reason, asked.until)
        return _answer(matched, asked)

    @requires(Permission.OPERATE)
    async def resume_jobs(self, request: Request, namespace: Within) -> Response:
        """Lets the paused jobs that fit go on, each with its next tick from now."""
        asked = await self._asked(request, resume_decoder)
        matched = await matched_jobs(self._store, namespace, asked, is_paused=True)
        if not asked.dry_run:
            for job_id, name in matched:
                # One that was resumed, changed or deleted meanwhile is somebody else's doing, and stands.
                job = await find_job(self._store, namespace, job_id, name)
                if job is not None and job.paused_at is not None:
                    await self._jobs.resume_job(*resumed(job, await self._jobs.database_now()))
            self._store.hints.send([JOBS_TOPIC])
        return _answer(matched, asked)

    async def _asked(self, request: Request, decoder: msgspec.json.Decoder[G]) -> G:
        asked = await decoded(await read(request, self._body_max_bytes), decoder)
        refuse_empty(asked)
        return asked


def refuse_empty(asked: GroupRequest) -> None:
    if asked.name is None and asked.task is None and asked.queue is None and asked.tag is None:
        raise Invalid("name: say which jobs: name, task, queue or tag; all of them have the name *", field="name")


async def matched_jobs(
    store: Store, namespace: Namespace, asked: GroupRequest, *, is_paused: bool | None
) -> list[tuple[UUID, str]]:
    """Id and name of those that fit; `is_paused` None: paused or not. Raises `Conflict` when they are not as many as
    were expected."""
    pattern = None if asked.name is None else like(namespace.qualified(asked.name))
    task = None if asked.task is None else namespace.qualified(asked.task)
    queue = None if asked.queue is None else namespace.qualified(asked.queue)
    whole_name = None if asked.name is None or set(asked.name) & set("*?") else namespace.qualified(asked.name)
    matched = await store.jobs.match_jobs(
        namespace, pattern, task, queue, asked.tag, is_paused=is_paused, limit=MOST + 1, whole_name=whole_name
    )
    if len(matched) > MOST:
        raise Invalid(f"name: more than {MOST} jobs fit; take a narrower filter", field="name")
    if asked.expected is not None and asked.expected != len(matched):
        raise Conflict(f"expected: {len(matched)} jobs fit now, not {asked.expected}; nothing was done")
    return [(job_id, bare(name)) for job_id, name in matched]


def like(pattern: str) -> str:
    """A pattern of SQL's LIKE. Raises `Invalid` for what can be in no name."""
    if "\0" in pattern:
        raise Invalid("name: the character NUL is in no name", field="name")
    return re.sub(r"[*?%_\\]", lambda found: LIKE_WORDS[found[0]], pattern)


def _answer(matched: list[tuple[UUID, str]], asked: GroupRequest) -> Response:
    answer = GroupAnswer(len(matched), [name for _, name in matched], asked.dry_run)
    return Response(msgspec.json.encode(answer), media_type="application/json")
