"""The data of the charts of a recurring job: its ticks over time, and how long its runs take."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.pages import at_most, page_size
from foliot.api.requests.parameters import instant_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.model.roles import Permission
from foliot.store.lookup import get_job
from foliot.store.store import Store
from foliot.store.ticks import TickCell, TickDuration
from foliot.triggers.base import fire_times, to_instant

CELLS_MAX = 400
LONGEST = timedelta(days=400)
PERIOD_TICKS = 50
QUANTILE = 0.95


class TickStrip(msgspec.Struct, frozen=True):
    since: datetime
    until: datetime
    cell_seconds: float
    cells: list[TickCell]
    """The oldest first. Times without a tick have none."""
    counted_from: datetime | None
    """Set if there are more ticks than the latest 20,000, which are counted."""


class JobDurations(msgspec.Struct, frozen=True):
    items: list[TickDuration]
    """The latest runs that ended, the latest first."""
    p95_seconds: float | None
    """95 of 100 of them took at most as long. Null while none has ended."""
    period_seconds: float | None
    """The shortest time between two of the next 50 ticks. Null with fewer than two."""


def job_charts_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["recurring jobs"], route_class=PermissionRoute)
    strips = described(200, TickStrip, problems=(404, 422, 503))
    durations = described(200, JobDurations, problems=(404, 422, 503))

    @router.get("/v1/jobs/{reference}/ticks/strip", openapi_extra=strips)
    @requires(Permission.VIEW)
    async def get_tick_strip(
        reference: str, namespace: Within, since: str = "", until: str = "", cells: int = 120
    ) -> Response:
        """Shows what became of the ticks of a time, by default of the last day, in cells of equal length.

        A row that sums up ticks, such as those of a downtime, is one cell from `first` to `until_at`.
        """
        job, now = await get_job(store, namespace, reference), await store.jobs.database_now()
        end = instant_of(until, "until", now=now) or now
        begin = instant_of(since, "since", now=now) or end - timedelta(days=1)
        if not timedelta(0) < end - begin <= LONGEST:
            raise Invalid(f"since: must be before until, and at most {LONGEST.days} days", field="since")
        length = (end - begin).total_seconds() / at_most(cells, CELLS_MAX, "cells")
        found, counted_from = await store.ticks.ticks_by_cell(job.id, begin, end, length)
        return json_response(TickStrip(begin, end, length, found, counted_from))

    @router.get("/v1/jobs/{reference}/durations", openapi_extra=durations)
    @requires(Permission.VIEW)
    async def list_durations(reference: str, namespace: Within, limit: int = 100) -> Response:
        """Lists how long the latest runs took, and compares it with the time between ticks: where 95 of 100 runs take
        as long as that, runs overlap."""
        job = await get_job(store, namespace, reference)
        found = await store.ticks.list_durations(job.id, page_size(limit))
        ticks = fire_times(job.timetable.fires, to_instant(await store.jobs.database_now()), PERIOD_TICKS)
        period = min((after - before for before, after in pairwise(ticks)), default=None)
        return json_response(JobDurations(found, _p95([one.seconds for one in found]), period))

    return router


def _p95(seconds: list[float]) -> float | None:
    """The smallest of them that is not exceeded by more than five of 100."""
    return sorted(seconds)[math.ceil(len(seconds) * QUANTILE) - 1] if seconds else None
