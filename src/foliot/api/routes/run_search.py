"""`GET /v1/runs/count`, `/facets` and `/histogram`: what the runs that pass filters add up to.

Each reads a bounded number of runs, and its answer says whether that were all.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

import msgspec
from fastapi import APIRouter, Depends
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.openapi.schemas import run_name
from foliot.api.requests.idempotency import answered
from foliot.api.requests.pages import at_most
from foliot.api.run_filters import LOOK_BACK, Asked, Search, search_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.model.ids import made_at
from foliot.model.job_request import EARLIEST, LATEST
from foliot.model.namespace import Namespace, bare
from foliot.model.roles import Permission
from foliot.store.run_lists import Where
from foliot.store.run_search import Bucket, Counted, Facet
from foliot.store.store import Store

COUNT_SCAN_MAX, FACET_SCAN_MAX = 20_000, 5_000
FACET_MAX = 20
BUCKETS_MAX = 120
# All buckets together read at most this many runs.
HISTOGRAM_READ_MAX = 9_600


class RunCount(msgspec.Struct, frozen=True):
    count: int
    more: bool
    """There are more runs than were read, so the count may be too low."""
    since: datetime | None
    """The oldest run that was read was created here."""


class FacetValue(msgspec.Struct, frozen=True):
    value: str
    """As the filter of the same name takes it."""
    name: str
    count: int


class RunFacets(msgspec.Struct, frozen=True):
    count: int
    more: bool
    """There are more runs than were read: the counts are those of the latest ones."""
    since: datetime | None
    """The oldest run that was read was created here."""
    state: list[FacetValue]
    queue: list[FacetValue]
    task: list[FacetValue]
    job: list[FacetValue]
    worker: list[FacetValue]
    error: list[FacetValue]
    tag: list[FacetValue]


class HistogramBucket(msgspec.Struct, frozen=True):
    begin: datetime
    end: datetime
    states: dict[str, int]
    is_estimate: bool
    """The bucket has more runs than were read, so its counts are estimates from the first of them."""


class RunHistogram(msgspec.Struct, frozen=True):
    buckets: list[HistogramBucket]
    since: datetime
    until: datetime


class RunSearchRoutes:
    def __init__(self, *, store: Store) -> None:
        self._store = store
        self.router = APIRouter(tags=["runs"], route_class=PermissionRoute)
        add = self.router.add_api_route
        add("/v1/runs/count", self.count_runs, methods=["GET"], openapi_extra=described(200, RunCount))
        add("/v1/runs/facets", self.get_facets, methods=["GET"], openapi_extra=described(200, RunFacets))
        histogram = described(200, RunHistogram)
        add("/v1/runs/histogram", self.get_histogram, methods=["GET"], openapi_extra=histogram)

    @requires(Permission.VIEW)
    async def count_runs(self, namespace: Within, asked: Annotated[Asked, Depends()]) -> Response:
        """Counts the runs that pass the filters of `GET /v1/runs`, among the latest 20,000."""
        search = await search_of(self._store, namespace, asked)
        counted = await self._count(search, COUNT_SCAN_MAX, top=0)
        return answered(RunCount(counted.wanted, counted.read >= COUNT_SCAN_MAX, _since(counted)))

    @requires(Permission.VIEW)
    async def get_facets(self, namespace: Within, asked: Annotated[Asked, Depends()]) -> Response:
        """Counts the most frequent states, queues, tasks, jobs, workers, errors and tags among the latest 5,000 runs
        that pass the filters of `GET /v1/runs`."""
        search = await search_of(self._store, namespace, asked)
        counted = await self._count(search, FACET_SCAN_MAX, top=FACET_MAX)
        names = await self._worker_names(namespace, counted)
        values = {
            kind: [_value(facet, names) for facet in counted.facets if facet.kind == kind]
            for kind in ("state", "queue", "task", "job", "worker", "error", "tag")
        }
        return answered(RunFacets(counted.wanted, counted.read >= FACET_SCAN_MAX, _since(counted), **values))

    @requires(Permission.VIEW)
    async def get_histogram(self, namespace: Within, asked: Annotated[Asked, Depends()], buckets: int = 60) -> Response:
        """Counts the runs that pass the filters of `GET /v1/runs` by state, in buckets of equal length.

        The buckets reach from `since`, by default seven days ago, to `until`, by default now. A run is in the bucket of
        its creation; the run of a tick in that of the tick.
        """
        search = await search_of(self._store, namespace, asked)
        begin, end = await self._range(search)
        length = (end - begin) / at_most(buckets, BUCKETS_MAX, "buckets")
        bounds = [begin + length * number for number in range(buckets)] + [end]
        each = HISTOGRAM_READ_MAX // buckets
        found = await self._store.run_search.count_runs_by_time(
            _place_of_histogram(search), bounds, search.wanted, search.job_id, each=each
        )
        shown = [_bucket(bucket, is_full=bucket.read >= each) for bucket in found]
        return answered(RunHistogram(shown, begin, end))

    async def _count(self, search: Search, scan: int, *, top: int) -> Counted:
        times = search.begin or EARLIEST, search.end or LATEST
        where: Where = "job" if search.job_id is not None else search.place[0]
        return await self._store.run_search.count_wanted_runs(
            where, search.span(), times, search.wanted, search.job_id, scan=scan, top=top
        )

    async def _range(self, search: Search) -> tuple[datetime, datetime]:
        now = await self._store.jobs.database_now()
        end = search.end or now
        if search.family is not None:
            begin = search.begin or search.family.created_at
            end = search.end or search.family.finished_at or now
        else:
            begin = search.begin or end - LOOK_BACK
        return min(begin, end - timedelta(seconds=1)), end

    async def _worker_names(self, namespace: Namespace, counted: Counted) -> dict[UUID, str]:
        if not any(facet.kind == "worker" for facet in counted.facets):
            return {}
        return {worker.id: worker.name for worker in await self._store.workers.list_workers(namespace)}


def _since(counted: Counted) -> datetime | None:
    return None if counted.oldest_read is None else made_at(counted.oldest_read)


def _value(facet: Facet, workers: dict[UUID, str]) -> FacetValue:
    if facet.kind == "worker":
        assert facet.id is not None  # noqa: S101
        return FacetValue(str(facet.id), workers.get(facet.id, str(facet.id)), facet.count)
    value = facet.value or ""
    if facet.kind == "job":
        return FacetValue(str(facet.id), run_name(value, facet.id) or "", facet.count)
    name = bare(value) if facet.kind in ("queue", "task") else value
    return FacetValue(name, name, facet.count)


def _place_of_histogram(search: Search) -> Where:
    """Buckets are read along ids, or along the ticks of a job."""
    if search.job_id is not None:
        return "job"
    where, _ = search.place
    if where == "children":
        return "all"
    return "live" if where == "running" else where


def _bucket(bucket: Bucket, *, is_full: bool) -> HistogramBucket:
    factor = 1.0
    if is_full and bucket.last_read is not None:
        length = (bucket.end - bucket.begin).total_seconds()
        reached = (made_at(bucket.last_read) - bucket.begin).total_seconds()
        # An id that is not ours holds no time.
        factor = length / min(length, reached) if reached > 0 else 1.0
    states = {str(state): round(count * factor) for state, count in sorted(bucket.states.items())}
    return HistogramBucket(bucket.begin, bucket.end, states, is_estimate=is_full)
