"""`GET /v1/runs`, `/v1/jobs/{id}/runs` and `/v1/runs/{id}/attempts`: what has run, what runs, and what will."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.openapi import described
from foliot.api.parameters import cursor_of, cursor_text, id_of, instant_of, run_id_of, states_of, text_of
from foliot.api.routes.recurring import PAGE_MAX, job_id_of, within
from foliot.api.schemas import EARLIEST, LATEST
from foliot.errors import Invalid, NotFound
from foliot.model.ids import CLOCK_TOLERANCE, first_id_of, not_finished_before
from foliot.model.run import RunView
from foliot.model.states import TERMINAL, status_of
from foliot.store.run_lists import AttemptItem, RunFilter, RunItem, Span, Where
from foliot.store.store import Store
from foliot.store.workflows import Parent

LOOK_BACK = timedelta(days=7)
# How many rows a page looks at in search of those that are wanted.
SCAN_MAX = 10_000
# So many children are found by their parent and sorted; more than that, and they are what most of the ids between are.
FEW = 20_000
FIRST_ID, LAST_ID = UUID(int=0), UUID(int=(1 << 128) - 1)


class RunListed(msgspec.Struct, frozen=True):
    id: UUID
    name: str | None
    status: str
    state: str
    reason: str | None
    task: str
    queue: str
    priority: int
    attempt: int
    worker_id: UUID | None
    job_id: UUID | None
    tick_at: datetime | None
    rerun_of: UUID | None
    rerun_as: UUID | None
    parent_id: UUID | None
    step: str | None
    error: Any
    created_at: datetime
    scheduled_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunPage(msgspec.Struct, frozen=True):
    items: list[RunListed]
    next: str | None
    """Give it as `after` for the next page. A page may be short, or empty, and still have one: it was looked no further."""
    since: datetime | None = None
    """How far back finished runs are looked for."""


class AttemptShown(msgspec.Struct, frozen=True):
    attempt: int
    token: int
    worker_id: UUID
    outcome: str
    started_at: datetime
    finished_at: datetime | None
    duration_seconds: float | None
    output_bytes: int | None
    error: Any


class AttemptList(msgspec.Struct, frozen=True):
    items: list[AttemptShown]


class RunListRoutes:
    def __init__(self, *, store: Store) -> None:
        self._store = store
        self.router = APIRouter(tags=["runs"])
        pages = described(200, RunPage, problems=(404, 422, 503))
        add = self.router.add_api_route
        add("/v1/runs", self.list_runs, methods=["GET"], openapi_extra=pages)
        add("/v1/jobs/{reference}/runs", self.list_job_runs, methods=["GET"], openapi_extra=pages)
        attempts = described(200, AttemptList, problems=(404, 503))
        add("/v1/runs/{reference}/attempts", self.list_attempts, methods=["GET"], openapi_extra=attempts)

    async def list_runs(
        self,
        state: str = "",
        queue: str = "",
        task: str = "",
        job: str = "",
        since: str = "",
        until: str = "",
        text: str = "",
        parent: str = "",
        after: str = "",
        limit: int = 50,
    ) -> Response:
        """Runs, the latest made first; a tick's run counts as made at its tick. `state`: inside or outside words, several with commas.

        Finished runs of the last seven days, unless `since` says otherwise: a time, or a duration such as `2h`. `parent`: the steps of a
        workflow, or the items of a map, however old.
        """
        family = await self._parent_named(parent) if parent else None
        of = family.id if family else None
        wanted = RunFilter(states_of(state), text_of(queue, "queue"), text_of(task, "task"), text_of(text, "text"), of)
        limit, now = within(limit, PAGE_MAX, "limit"), await self._store.jobs.database_now()
        begin, end = instant_of(since, "since", now=now), instant_of(until, "until", now=now)
        if begin and end and begin > end:
            raise Invalid("until: is before since", field="until")
        if job:
            if family is not None:
                raise Invalid("parent: give either job or parent", field="parent")
            return _answer(await self._job_page(await self._job_named(job), wanted, begin or EARLIEST, end or LATEST, after, limit))
        looked_from = begin or (family.created_at - CLOCK_TOLERANCE if family else now - LOOK_BACK)
        last = end if family is None or family.finished_at is None else min(end or LATEST, family.finished_at + CLOCK_TOLERANCE)
        first = first_id_of(looked_from)
        before = min(id_of(after, "after") if after else LAST_ID, first_id_of(last) if last else LAST_ID)
        span = Span(before, first_id_of(begin) if begin else FIRST_ID, first, not_finished_before(first))
        where, is_exact = place_of(wanted) if family is None or family.total > FEW else ("children", False)
        page = await self._store.run_lists.list_runs(where, span, wanted, limit=limit, scan=limit + 1 if is_exact else SCAN_MAX)
        return _answer(RunPage([listed(item) for item in page.items], str(page.following) if page.following else None, looked_from))

    async def list_job_runs(self, reference: str, state: str = "", after: str = "", limit: int = 50) -> Response:
        """The runs of a recurring job, the latest tick first; of a one-off job, its one run."""
        limit = within(limit, PAGE_MAX, "limit")
        wanted = RunFilter(states_of(state))
        job_id = job_id_of(reference)
        job = await self._store.jobs.get_job(job_id, reference)
        if job is None and job_id is not None and (run := await self._store.runs.get_run(job_id)):
            return _answer(RunPage([listed(item_of(run))], None))
        found = job.id if job else job_id
        page = await self._job_page(found, wanted, EARLIEST, LATEST, after, limit) if found else None
        if page is None or (job is None and not page.items and not after):
            raise NotFound(f"there is no job {reference!r}")
        return _answer(page)

    async def list_attempts(self, reference: str) -> Response:
        """Every attempt at a run, in order; the last one may be under way."""
        run_id = run_id_of(reference)
        attempts = await self._store.run_lists.list_attempts(run_id)
        if not attempts and await self._store.runs.get_run(run_id) is None:
            raise NotFound(f"there is no run {reference!r}")
        return _answer(AttemptList([attempt_shown(attempt) for attempt in attempts]))

    async def _parent_named(self, reference: str) -> Parent:
        found = await self._store.workflows.get_parent(id_of(reference, "parent"))
        if found is None:
            raise Invalid(f"parent: there is no workflow or map {reference!r} that has begun", field="parent")
        return found

    async def _job_named(self, reference: str) -> UUID:
        job_id = job_id_of(text_of(reference, "job") or "")
        job = await self._store.jobs.get_job(job_id, reference)
        found = job.id if job else job_id
        if found is None:
            raise Invalid(f"job: there is no recurring job {reference!r}", field="job")
        return found

    async def _job_page(self, job_id: UUID, wanted: RunFilter, since: datetime, until: datetime, after: str, limit: int) -> RunPage:
        before = min(cursor_of(after), (until, FIRST_ID)) if after else (until, FIRST_ID)
        scan = limit + 1 if wanted.is_empty else SCAN_MAX
        page = await self._store.run_lists.list_job_runs(job_id, before, since, wanted, limit=limit, scan=scan)
        return RunPage([listed(item) for item in page.items], cursor_text(*page.following) if page.following else None)


def place_of(wanted: RunFilter) -> tuple[Where, bool]:
    """Where to look for the states that are wanted, and whether everything that is there is wanted."""
    states, is_only_by_state = set(wanted.states or ()), wanted == RunFilter(wanted.states)
    if states == {"running"}:
        return "running", is_only_by_state
    if states == {"failed"}:
        return "failed", is_only_by_state
    if states and states <= TERMINAL:
        return "history", False
    if states and not states & TERMINAL:
        return "live", False
    return "all", wanted.is_empty


def listed(item: RunItem) -> RunListed:
    return RunListed(
        id=item.id, name=item.name, status=status_of(item.state, item.attempt), state=item.state, reason=item.reason, task=item.task,
        queue=item.queue, priority=item.priority, attempt=item.attempt, worker_id=item.worker_id, job_id=item.job_id,
        tick_at=item.tick_at, rerun_of=item.rerun_of, rerun_as=item.rerun_as, parent_id=item.parent_id, step=item.step,
        error=item.error, created_at=item.created_at, scheduled_at=item.due_at, started_at=item.started_at, finished_at=item.finished_at,
    )  # fmt: skip


def item_of(run: RunView) -> RunItem:
    return RunItem(
        run.id, run.name, run.task, run.queue, run.state, run.reason, run.priority, run.attempt, run.worker_id, run.job_id, run.tick_at,
        run.rerun_of, run.rerun_as, run.error, run.due_at, run.created_at, run.started_at, run.finished_at, run.parent_id, run.step,
    )  # fmt: skip


def attempt_shown(item: AttemptItem) -> AttemptShown:
    duration = None if item.finished_at is None else (item.finished_at - item.started_at).total_seconds()
    return AttemptShown(
        attempt=item.attempt, token=item.token, worker_id=item.worker_id, outcome=item.outcome, started_at=item.started_at,
        finished_at=item.finished_at, duration_seconds=duration, output_bytes=item.output_bytes, error=item.error,
    )  # fmt: skip


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
