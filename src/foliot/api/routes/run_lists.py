"""`GET /v1/runs`, `/v1/jobs/{id}/runs` and `/v1/runs/{id}/attempts`: lists of runs and attempts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import tags_of
from foliot.api.requests.pages import page_size
from foliot.api.requests.parameters import run_id_of, states_of
from foliot.api.run_filters import Asked, Found, Order, find_job_runs, find_runs
from foliot.api.run_views import RunListed, listed
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import NotFound
from foliot.model.job_request import EARLIEST, LATEST
from foliot.model.roles import Permission
from foliot.model.run import RunView
from foliot.store.lookup import find_job, find_run, job_id_of
from foliot.store.run_lists import AttemptItem, RunFilter, RunItem
from foliot.store.store import Store


class RunPage(msgspec.Struct, frozen=True):
    items: list[RunListed]
    next: str | None
    """Pass it as `after` to get the next page. A short or empty page may have a next one."""
    since: datetime | None = None
    """Finished runs are listed from here on."""
    is_partial: bool = False
    """There are more runs than were compared for the order."""


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
    refused_at: datetime | None
    """When the worker of a lost attempt reported an outcome after all, which changed nothing."""


class AttemptList(msgspec.Struct, frozen=True):
    items: list[AttemptShown]


class RunListRoutes:
    def __init__(self, *, store: Store) -> None:
        self._store = store
        self.router = APIRouter(tags=["runs"], route_class=PermissionRoute)
        pages = described(200, RunPage, problems=(404, 422, 503))
        add = self.router.add_api_route
        add("/v1/runs", self.list_runs, methods=["GET"], openapi_extra=pages)
        add("/v1/jobs/{reference}/runs", self.list_job_runs, methods=["GET"], openapi_extra=pages)
        attempts = described(200, AttemptList, problems=(404, 503))
        add("/v1/runs/{reference}/attempts", self.list_attempts, methods=["GET"], openapi_extra=attempts)

    @requires(Permission.VIEW)
    async def list_runs(
        self,
        namespace: Within,
        asked: Annotated[Asked, Depends()],
        order: Order = "-created",
        after: str = "",
        limit: int = 50,
    ) -> Response:
        """Lists runs, latest first; the run of a tick counts from its tick. `state`: states or statuses, separated by
        commas.

        Finished runs are those of the last seven days, or since `since`, a time or a duration such as `2h`. With
        `parent`, lists the steps of a workflow or the items of a map of any age. Each `not_` filter leaves out the runs
        that its counterpart selects. An `order` by duration, attempt or priority compares the latest 10,000 runs.
        """
        found = await find_runs(self._store, namespace, asked, after=after, limit=page_size(limit), order=order)
        return _answer(page_of(found))

    @requires(Permission.VIEW)
    async def list_job_runs(
        self, reference: str, namespace: Within, state: str = "", after: str = "", limit: int = 50
    ) -> Response:
        """Lists the runs of a recurring job, latest tick first, or the single run of a one-off job."""
        limit = page_size(limit)
        wanted = RunFilter(namespace=namespace, states=states_of(state))
        job_id = job_id_of(reference)
        job = await find_job(self._store, namespace, job_id, reference)
        if job is None and job_id is not None and (run := await find_run(self._store, namespace, job_id)):
            return _answer(RunPage([listed(item_of(run))], None))
        found = job.id if job else job_id
        page = (
            page_of(await find_job_runs(self._store, found, wanted, EARLIEST, LATEST, after=after, limit=limit))
            if found
            else None
        )
        if page is None or (job is None and not page.items and not after):
            raise NotFound(f"there is no job {reference!r}")
        return _answer(page)

    @requires(Permission.VIEW)
    async def list_attempts(self, reference: str, namespace: Within) -> Response:
        """Lists the attempts of a run in order. The last one may still be running."""
        run_id = run_id_of(reference)
        if await find_run(self._store, namespace, run_id) is None:
            raise NotFound(f"there is no run {reference!r}")
        attempts = await self._store.run_lists.list_attempts(run_id)
        return _answer(AttemptList([attempt_shown(attempt) for attempt in attempts]))


def page_of(found: Found) -> RunPage:
    return RunPage([listed(item) for item in found.items], found.next, found.since, found.is_partial)


def item_of(run: RunView) -> RunItem:
    return RunItem(
        run.id,
        run.name,
        run.task,
        run.queue,
        run.state,
        run.reason,
        run.priority,
        run.attempt,
        run.worker_id,
        run.job_id,
        run.tick_at,
        run.rerun_of,
        run.rerun_as,
        run.error,
        run.due_at,
        run.created_at,
        run.started_at,
        run.finished_at,
        run.parent_id,
        run.step,
        tags_of(run.options),
    )


def attempt_shown(item: AttemptItem) -> AttemptShown:
    duration = None if item.finished_at is None else (item.finished_at - item.started_at).total_seconds()
    return AttemptShown(
        attempt=item.attempt,
        token=item.token,
        worker_id=item.worker_id,
        outcome=item.outcome,
        started_at=item.started_at,
        finished_at=item.finished_at,
        duration_seconds=duration,
        output_bytes=item.output_bytes,
        error=item.error,
        refused_at=item.refused_at,
    )


def _answer(body: object) -> Response:
    return Response(msgspec.json.encode(body), media_type="application/json")
