"""Lists live and finished runs in pages.

A page reads a bounded number of rows. So it may hold fewer items than requested, or none, and still have a `following`
cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec

from foliot.model.ids import made_at, not_finished_before
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Record

decode_json = msgspec.json.Decoder().decode
C = TypeVar("C")
I = TypeVar("I")  # noqa: E741
Where = Literal["all", "live", "history", "running", "failed", "children", "tagged", "job"]


@dataclass(frozen=True, slots=True)
class PayloadValue:
    """A value in payloads, compared as text: 7 and "7" are equal."""

    path: Sequence[str]
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Filters on runs; None is not set. Names of queues and tasks are patterns of LIKE, qualified. A text is searched
    in the name, the task and the error."""

    namespace: Namespace
    states: Sequence[str] | None = None
    """States. Some have a variant with a + at the end, which means that an attempt was made before."""
    reasons: Sequence[str] | None = None
    not_reasons: Sequence[str] | None = None
    queues: Sequence[str] | None = None
    not_queues: Sequence[str] | None = None
    tasks: Sequence[str] | None = None
    not_tasks: Sequence[str] | None = None
    text: str | None = None
    not_text: str | None = None
    error: str | None = None
    not_error: str | None = None
    parent: UUID | None = None
    tags: Sequence[str] | None = None
    """All of them are wanted."""
    not_tags: Sequence[str] | None = None
    workers: Sequence[UUID] | None = None
    not_workers: Sequence[UUID] | None = None
    attempt_from: int | None = None
    attempt_to: int | None = None
    priority_from: int | None = None
    priority_to: int | None = None
    seconds_from: float | None = None
    seconds_to: float | None = None
    payload: Sequence[PayloadValue] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it matches every run of its namespace."""
        return self == RunFilter(namespace=self.namespace)

    @property
    def is_only_by_state(self) -> bool:
        return self == RunFilter(namespace=self.namespace, states=self.states)

    def encoded(self, now: datetime | None) -> str:
        """The filters as a JSON object, for the fragment `wanted` of the statements."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        given |= {"namespace": self.namespace.name, "now": now}
        return msgspec.json.encode({name: value for name, value in given.items() if value is not None}).decode()


@dataclass(frozen=True, slots=True)
class Sort:
    """An order of runs other than by their creation, applied to the runs that were read."""

    key: Literal["duration", "attempt", "priority"]
    is_descending: bool


@dataclass(frozen=True, slots=True)
class RunItem:
    """A run in a list."""

    id: UUID
    name: str | None
    task: str
    queue: str
    state: RunState
    reason: str | None
    priority: int
    attempt: int
    worker_id: UUID | None
    job_id: UUID | None
    tick_at: datetime | None
    rerun_of: UUID | None
    rerun_as: UUID | None
    error: Any
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    parent_id: UUID | None
    """The workflow or map that it belongs to."""
    step: str | None
    tags: list[str]


ITEM_FIELDS = len(fields(RunItem))


@dataclass(frozen=True, slots=True)
class Page(Generic[I, C]):
    items: list[I]
    following: C | None
    """The cursor of the next page, or None on the last page."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of ids: `live_from` and `history_from` are inclusive, `before` is exclusive."""

    before: UUID
    live_from: UUID
    history_from: UUID
    finished_from: datetime


@dataclass(frozen=True, slots=True)
class AttemptItem:
    token: int
    attempt: int
    worker_id: UUID
    started_at: datetime
    finished_at: datetime | None
    outcome: str
    error: Any
    output_bytes: int | None
    refused_at: datetime | None


class RunLists:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("run_lists")

    async def list_runs(
        self, where: Where, span: Span, wanted: RunFilter, *, limit: int, scan: int
    ) -> Page[RunItem, UUID]:
        rows = await self._runs(where, span, wanted, limit=limit + 1, scan=scan)
        items = [_item(row, 2) for row in rows if row[2] is not None]
        return page_of(items, limit, lambda item: item.id, rows[0][1] if rows[0][0] >= scan else None)

    async def first_runs(
        self, where: Where, span: Span, wanted: RunFilter, sort: Sort, *, limit: int, scan: int
    ) -> tuple[list[RunItem], bool]:
        """The first runs in an order, and whether there are more runs than were compared."""
        rows = await self._runs(where, span, wanted, sort, limit=limit, scan=scan)
        return [_item(row, 2) for row in rows if row[2] is not None], rows[0][0] >= scan

    async def _runs(
        self, where: Where, span: Span, wanted: RunFilter, sort: Sort | None = None, *, limit: int, scan: int
    ) -> list[Record]:
        return await self._database.fetch(
            self._queries["list_runs"],
            place=where,
            before=span.before,
            live_from=span.live_from,
            history_from=span.history_from,
            scan=scan,
            finished_from=span.finished_from,
            parent_id=wanted.parent,
            limit=limit,
            **self._filters(wanted),
            **_order(sort),
        )

    async def list_oldest_runs(
        self, where: Where, after: UUID, span: Span, wanted: RunFilter, *, limit: int, scan: int
    ) -> Page[RunItem, UUID]:
        """Oldest first, after an id and before the end of the span."""
        rows = await self._database.fetch(
            self._queries["list_oldest_runs"],
            place=where,
            after=after,
            live_from=span.live_from,
            history_from=span.history_from,
            before=span.before,
            scan=scan,
            finished_from=span.finished_from,
            parent_id=wanted.parent,
            limit=limit + 1,
            **self._filters(wanted),
            **_order(None),
        )
        items = [_item(row, 2) for row in rows if row[2] is not None]
        return page_of(items, limit, lambda item: item.id, rows[0][1] if rows[0][0] >= scan else None)

    async def list_job_runs(
        self, job_id: UUID, before: tuple[datetime, UUID], since: datetime, wanted: RunFilter, *, limit: int, scan: int
    ) -> Page[RunItem, tuple[datetime, UUID]]:
        rows = await self._job_runs(job_id, before, since, wanted, limit=limit + 1, scan=scan)
        items = [_item(row, 3) for row in rows if row[3] is not None]
        last = (rows[0][1], rows[0][2]) if rows[0][0] >= scan else None
        return page_of(items, limit, lambda item: (item.tick_at or since, item.id), last)

    async def first_job_runs(
        self,
        job_id: UUID,
        before: tuple[datetime, UUID],
        since: datetime,
        wanted: RunFilter,
        sort: Sort,
        *,
        limit: int,
        scan: int,
    ) -> tuple[list[RunItem], bool]:
        """As `first_runs`, of one job."""
        rows = await self._job_runs(job_id, before, since, wanted, sort, limit=limit, scan=scan)
        return [_item(row, 3) for row in rows if row[3] is not None], rows[0][0] >= scan

    async def _job_runs(
        self,
        job_id: UUID,
        before: tuple[datetime, UUID],
        since: datetime,
        wanted: RunFilter,
        sort: Sort | None = None,
        *,
        limit: int,
        scan: int,
    ) -> list[Record]:
        return await self._database.fetch(
            self._queries["list_job_runs"],
            job_id=job_id,
            before_at=before[0],
            before_id=before[1],
            scan=scan,
            since=since,
            limit=limit,
            **self._filters(wanted),
            **_order(sort),
        )

    def _filters(self, wanted: RunFilter) -> dict[str, Any]:
        return {
            "reads_payload": wanted.payload is not None,
            "wanted": wanted.encoded(self._database.clock.sql_now()),
        }

    async def find_items(self, namespace: Namespace, run_ids: Sequence[UUID]) -> list[RunItem]:
        """These runs of the namespace, latest id first."""
        rows = await self._database.fetch(
            self._queries["find_items"],
            ids=run_ids,
            finished_from=not_finished_before(min(run_ids, key=made_at)),
            namespace=namespace.name,
        )
        return [_item(row, 0) for row in rows]

    async def list_attempts(self, run_id: UUID) -> list[AttemptItem]:
        """Oldest first. The last one may be running."""
        rows = await self._database.fetch(
            self._queries["list_attempts"], run_id=run_id, finished_from=not_finished_before(run_id)
        )
        found = [(*row[:6], None if row[6] is None else decode_json(row[6]), *row[7:]) for row in rows]
        return [AttemptItem(*values) for values in found]


def _order(sort: Sort | None) -> dict[str, Any]:
    return {"sort": sort.key if sort else None, "sign": -1.0 if sort and sort.is_descending else 1.0}


def page_of(items: list[I], limit: int, cursor: Any, last_looked_at: C | None) -> Page[I, C]:
    """Cuts `items` to `limit`. One item more shows that there is another page; otherwise `last_looked_at` decides."""
    if len(items) > limit:
        return Page(items[:limit], cursor(items[limit - 1]))
    return Page(items, last_looked_at)


def _item(row: Record, first: int) -> RunItem:
    values = list(row)[first : first + ITEM_FIELDS]
    values[4] = RunState(values[4])
    values[13] = None if values[13] is None else decode_json(values[13])
    values[20] = [] if values[20] is None else decode_json(values[20])
    return RunItem(*values)
