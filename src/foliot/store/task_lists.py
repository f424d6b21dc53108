"""Lists the known tasks, and the live workers that offer them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.ids import first_id_of, not_finished_before
from foliot.model.namespace import Namespace, bare
from foliot.store import queries
from foliot.store.postgres import Database, Record

WORKERS_MAX = 1000
STATISTICS_SCAN = 20_000
decode_tags = msgspec.json.Decoder(tuple[str, ...]).decode


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A known task, by its bare name."""

    name: str
    queue: str
    tags: tuple[str, ...]
    guarantee: str | None
    announcement: str | None
    """The hash of the latest announcement."""
    announced_at: datetime
    workers: int
    """The live workers that offer it."""


@dataclass(frozen=True, slots=True)
class TaskWorker:
    id: UUID
    name: str
    announcement: str | None
    """The hash of what its code says about its tasks."""


@dataclass(frozen=True, slots=True)
class TaskStatistics:
    """Of the latest runs that have ended."""

    ended: int
    """How many succeeded or failed."""
    failed: int
    p50_seconds: float | None
    """Half of them took at most this long, from the start of the last attempt."""
    p95_seconds: float | None


class TaskLists:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("task_lists")

    async def page_of_tasks(self, namespace: Namespace, *, after: str | None, limit: int) -> list[TaskItem]:
        """By name. `after` is the last name of the page before."""
        rows = await self._database.fetch(
            self._queries["page_of_tasks"],
            namespace=namespace.name,
            after=None if after is None else namespace.qualified(after),
            limit=limit,
            now=self._database.clock.sql_now(),
        )
        return [_item(row) for row in rows]

    async def find_task(self, namespace: Namespace, name: str) -> TaskItem | None:
        row = await self._database.fetch_row(
            self._queries["find_task"], name=namespace.qualified(name), now=self._database.clock.sql_now()
        )
        return None if row is None else _item(row)

    async def workers_of_task(self, namespace: Namespace, name: str) -> list[TaskWorker]:
        """The live workers that offer the task, by name; the first thousand."""
        rows = await self._database.fetch(
            self._queries["workers_of_task"],
            name=namespace.qualified(name),
            most=WORKERS_MAX,
            now=self._database.clock.sql_now(),
        )
        return [TaskWorker(*row) for row in rows]

    async def task_statistics(self, namespace: Namespace, since: datetime) -> dict[str, TaskStatistics]:
        """By task, of the latest `STATISTICS_SCAN` runs that were created since then and have ended."""
        first = first_id_of(since)
        rows = await self._database.fetch(
            self._queries["task_statistics"],
            namespace=namespace.name,
            first_id=first,
            finished_from=not_finished_before(first),
            scan=STATISTICS_SCAN,
        )
        return {bare(row[0]): TaskStatistics(*row[1:]) for row in rows}


def _item(row: Record) -> TaskItem:
    return TaskItem(bare(row[0]), bare(row[1]), decode_tags(row[2]) if row[2] else (), *row[3:])
