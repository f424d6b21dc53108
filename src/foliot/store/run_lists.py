"""Lists of runs, live and finished, page by page.

A page looks at a bounded number of rows. It may therefore hold fewer than were asked for, or none, and still have a
`following` cursor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec

from foliot.model.ids import not_finished_before
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Record

decode_json = msgspec.json.Decoder().decode
C = TypeVar("C")
I = TypeVar("I")  # noqa: E741
Where = Literal["all", "live", "history", "running", "failed", "children", "tagged"]


@dataclass(frozen=True, slots=True)
class RunFilter:
    namespace: Namespace
    states: Sequence[str] | None = None
    """States; one with a + at its end means that an attempt has been made, one without that none has."""
    queue: str | None = None
    """As it is stored; so is the task."""
    task: str | None = None
    text: str | None = None
    """In the name, the task or the error."""
    parent: UUID | None = None
    tag: str | None = None

    @property
    def is_empty(self) -> bool:
        """Everything of the namespace is wanted; there may be others."""
        return self == RunFilter(self.namespace)


@dataclass(frozen=True, slots=True)
class RunItem:
    """A run as lists show it."""

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
    """The workflow or map that it is a part of."""
    step: str | None
    tags: list[str]


@dataclass(frozen=True, slots=True)
class Page(Generic[I, C]):
    items: list[I]
    following: C | None
    """Where the next page begins; None when there is nothing beyond this one."""


@dataclass(frozen=True, slots=True)
class Span:
    """Ids to look between: `live_from` and `history_from` are included, `before` is not."""

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


class RunLists:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("run_lists")

    async def list_runs(
        self, where: Where, span: Span, wanted: RunFilter, *, limit: int, scan: int
    ) -> Page[RunItem, UUID]:
        arguments = (where, span.before, span.live_from, span.history_from, scan, span.finished_from)
        filters = (
            wanted.states,
            wanted.queue,
            wanted.task,
            wanted.text,
            limit + 1,
            wanted.parent,
            wanted.tag,
            wanted.namespace.name,
        )
        rows = await self._database.fetch(self._queries["list_runs"], *arguments, *filters)
        items = [_item(row, 2) for row in rows if row[2] is not None]
        return page_of(items, limit, lambda item: item.id, rows[0][1] if rows[0][0] >= scan else None)

    async def list_job_runs(
        self, job_id: UUID, before: tuple[datetime, UUID], since: datetime, wanted: RunFilter, *, limit: int, scan: int
    ) -> Page[RunItem, tuple[datetime, UUID]]:
        filters = (wanted.states, wanted.queue, wanted.task, wanted.text, limit + 1, wanted.tag, wanted.namespace.name)
        rows = await self._database.fetch(self._queries["list_job_runs"], job_id, *before, scan, since, *filters)
        items = [_item(row, 3) for row in rows if row[3] is not None]
        last = (rows[0][1], rows[0][2]) if rows[0][0] >= scan else None
        return page_of(items, limit, lambda item: (item.tick_at or since, item.id), last)

    async def list_attempts(self, run_id: UUID) -> list[AttemptItem]:
        """Oldest first; the last may be under way."""
        rows = await self._database.fetch(
            self._queries["list_attempts"], run_id=run_id, finished_from=not_finished_before(run_id)
        )
        return [
            AttemptItem(
                row[0], row[1], row[2], row[3], row[4], row[5], None if row[6] is None else decode_json(row[6]), row[7]
            )
            for row in rows
        ]


def page_of(items: list[I], limit: int, cursor: Any, last_looked_at: C | None) -> Page[I, C]:
    """`items` may be one more than `limit`, which shows that there are more; else it is where the look ended that says
    so."""
    if len(items) > limit:
        return Page(items[:limit], cursor(items[limit - 1]))
    return Page(items, last_looked_at)


def _item(row: Record, first: int) -> RunItem:
    values = list(row)[first:]
    values[4] = RunState(values[4])
    values[13] = None if values[13] is None else decode_json(values[13])
    values[20] = [] if values[20] is None else decode_json(values[20])
    return RunItem(*values)
