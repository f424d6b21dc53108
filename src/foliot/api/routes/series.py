"""`GET /v1/series`: what happened over time, for charts. Read from sums of minutes and hours, never from history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from foliot.api.json_response import json_response
from foliot.api.openapi.operations import described
from foliot.api.requests.parameters import instant_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.errors import Invalid
from foliot.model.histogram import BOUNDS, quantile_of
from foliot.model.namespace import bare
from foliot.model.roles import Permission
from foliot.store.rollups import HOUR, KEPT, MINUTE, QUEUES_MAX, Rollup
from foliot.store.store import Store
from foliot.triggers.base import to_datetime

Metric = Literal["ended", "wait", "ready"]
Group = Literal["state", "quantile", "queue"]
STATES = ("succeeded", "failed", "cancelled", "skipped")
QUANTILES = {"p50": 0.5, "p95": 0.95}
GROUPS: dict[Metric, tuple[Group, ...]] = {
    "ended": ("state", "queue"),
    "wait": ("quantile", "queue"),
    "ready": ("queue",),
}
POINTS_MAX = 1_440
QUEUES_SHOWN = 5
RANGE = timedelta(hours=3)
# Longer ranges are read from hours.
MINUTES_MAX = timedelta(hours=12)


class Line(msgspec.Struct, frozen=True):
    name: str
    """A state, a quantile or a queue."""
    values: list[float | None]
    """One for each point; null where nothing was measured."""


class Series(msgspec.Struct, frozen=True):
    metric: Metric
    group: Group
    unit: Literal["runs", "seconds"]
    since: datetime
    until: datetime
    """The end of the last point. Later minutes are not summed up yet."""
    step: int
    """Seconds from point to point; the first one begins at `since`."""
    lines: list[Line]


def series_router(*, store: Store) -> APIRouter:
    router = APIRouter(tags=["overview"], route_class=PermissionRoute)

    @router.get("/v1/series", openapi_extra=described(200, Series, problems=(422, 503)))
    @requires(Permission.VIEW)
    async def get_series(
        namespace: Within,
        metric: Metric = "ended",
        group: Group | None = None,
        since: str = "",
        until: str = "",
        step: int = 60,
        queue: str = "",
        limit: int = QUEUES_SHOWN,
    ) -> Response:
        """Shows what happened over time: runs that ended (`ended`), seconds from due to start (`wait`), or ready runs
        (`ready`).

        Groups are `state` or `queue` for `ended`, `quantile` or `queue` for `wait`, and `queue` for `ready`; of the
        queues, the `limit` with the most are shown. With `queue`, only the runs of that queue count, if it is one of
        the fifty busiest. `step` is a multiple of 60 seconds. The range, by default the last
        three hours, is read minute by minute up to twelve hours, and hour by hour beyond.
        """
        chosen = group or GROUPS[metric][0]
        if chosen not in GROUPS[metric]:
            raise Invalid(f"group: {metric} has the groups {', '.join(GROUPS[metric])}", field="group")
        if not 1 <= limit <= QUEUES_MAX:
            raise Invalid(f"limit: must be from 1 to {QUEUES_MAX}", field="limit")
        begin, end, unit = await _range(store, since, until, step)
        wanted = namespace.qualified(queue) if queue else None
        by_queue = chosen == "queue" or wanted is not None
        rows = await store.rollups.list_rollups(unit, namespace, begin, end, by_queue=by_queue)
        if wanted is not None:
            rows = [row for row in rows if row.queue == wanted]
        recorded = await store.rollups.list_recorded(unit, begin, end)
        points = _Points(begin, end, max(step, int(unit.total_seconds())), recorded)
        return json_response(
            Series(
                metric,
                chosen,
                "seconds" if metric == "wait" else "runs",
                begin,
                end,
                points.step,
                _lines(metric, chosen, rows, points, limit),
            )
        )

    return router


async def _range(store: Store, since: str, until: str, step: int) -> tuple[datetime, datetime, timedelta]:
    """Both ends on whole steps, and the length of the sums that are read."""
    if step < 60 or step % 60:
        raise Invalid("step: must be a multiple of 60 seconds", field="step")
    now = await store.jobs.database_now()
    recorded = await store.rollups.last_recorded(MINUTE)
    last = instant_of(until, "until", now=now) or (recorded + MINUTE if recorded else now)
    first = instant_of(since, "since", now=now) or last - RANGE
    if first >= last:
        raise Invalid("since: must be before until", field="since")
    if last - first > KEPT[HOUR]:
        raise Invalid(f"since: {KEPT[HOUR].days} days at most", field="since")
    unit = MINUTE if last - first <= MINUTES_MAX else HOUR
    if unit is HOUR and step > 3600 and step % 3600:
        raise Invalid("step: must be a multiple of an hour for more than twelve hours", field="step")
    seconds = max(step, int(unit.total_seconds()))
    begin = first.timestamp() // seconds * seconds
    end = -(-last.timestamp() // seconds) * seconds
    if (end - begin) / seconds > POINTS_MAX:
        raise Invalid(f"step: gives more than {POINTS_MAX} points; take a longer one", field="step")
    return to_datetime(begin), to_datetime(end), unit


class _Points:
    """The points of a chart."""

    def __init__(self, begin: datetime, end: datetime, step: int, recorded: Iterable[datetime]) -> None:
        self.begin, self.step = begin, step
        self.count = int((end - begin).total_seconds()) // step
        self.measured = {self.place(at) for at in recorded}

    def place(self, at: datetime) -> int:
        return int((at - self.begin).total_seconds()) // self.step

    def values(self, found: dict[int, float]) -> list[float | None]:
        return [found.get(place, 0.0) if place in self.measured else None for place in range(self.count)]


def _lines(metric: Metric, group: Group, rows: Sequence[Rollup], points: _Points, limit: int) -> list[Line]:
    if metric == "wait":
        if group == "quantile":
            return [Line(name, _quantiles(rows, share, points)) for name, share in QUANTILES.items()]
        return [
            Line(bare(queue), _quantiles(rows_of, QUANTILES["p95"], points))
            for queue, rows_of in _most(rows, lambda row: sum(row.waits), limit)
        ]
    if metric == "ready":
        return [
            Line(bare(queue), points.values(_greatest(rows_of, points)))
            for queue, rows_of in _most(rows, lambda row: row.ready, limit)
        ]
    if group == "state":
        return [
            Line(state, points.values(_sums(((row.at, getattr(row, state)) for row in rows), points)))
            for state in STATES
        ]
    return [
        Line(bare(queue), points.values(_sums(((row.at, row.ended) for row in rows_of), points)))
        for queue, rows_of in _most(rows, lambda row: row.ended, limit)
    ]


def _most(rows: Sequence[Rollup], size: Callable[[Rollup], int], limit: int) -> list[tuple[str, list[Rollup]]]:
    """The queues with the most, each with its rows."""
    by_queue: dict[str, list[Rollup]] = {}
    for row in rows:
        by_queue.setdefault(row.queue, []).append(row)
    ranked = sorted(by_queue.items(), key=lambda found: (-max(map(size, found[1])), found[0]))
    return [found for found in ranked[:limit] if any(map(size, found[1]))]


def _sums(values: Iterable[tuple[datetime, int]], points: _Points) -> dict[int, float]:
    found: dict[int, float] = {}
    for at, value in values:
        place = points.place(at)
        found[place] = found.get(place, 0.0) + value
    return found


def _greatest(rows: Iterable[Rollup], points: _Points) -> dict[int, float]:
    found: dict[int, float] = {}
    for row in rows:
        place = points.place(row.at)
        found[place] = max(found.get(place, 0.0), row.ready)
    return found


def _quantiles(rows: Iterable[Rollup], share: float, points: _Points) -> list[float | None]:
    """Null where nothing started: there was no wait."""
    counts: dict[int, list[int]] = {}
    for row in rows:
        place = points.place(row.at)
        before = counts.get(place, [0] * (len(BOUNDS) + 1))
        counts[place] = [one + other for one, other in zip(before, row.waits, strict=True)]
    return [quantile_of(counts[place], share) if place in counts else None for place in range(points.count)]
