"""Counts runs, workers and nodes, and lists queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.model.ids import first_id_of, not_finished_before
from foliot.model.namespace import Namespace
from foliot.model.scaling import QueueLoad
from foliot.store import queries
from foliot.store.postgres import Database

COUNT_MAX = 10_000


@dataclass(frozen=True, slots=True)
class QueueView:
    name: str
    ready: int
    oldest_ready_seconds: float | None
    running: int
    scheduled: int
    held: int
    slots: int
    workers: int
    paused_at: datetime | None
    paused_until: datetime | None
    paused_reason: str | None
    max_running: int | None
    max_depth: int | None
    uncounted_states: Sequence[str]
    """States with more runs, in all queues together, than were counted."""


def load_of(queue: QueueView, *, slots: int, elsewhere: int = 0) -> QueueLoad:
    return QueueLoad(
        waiting=queue.ready,
        running=queue.running,
        slots=slots,
        lag_seconds=max(0.0, queue.oldest_ready_seconds or 0.0),
        max_running=queue.max_running,
        is_paused=queue.paused_at is not None,
        elsewhere=elsewhere,
    )


@dataclass(frozen=True, slots=True)
class Nodes:
    workers: int
    draining_workers: int
    slots: int
    schedulers: int
    shards: int
    owned_shards: int
    now: datetime


class Overview:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("overview")

    async def list_queues(self, namespace: Namespace | None, most: int | None = None) -> list[QueueView]:
        """Lists the queues of one namespace, or of all. Counts stop at `most`, by default at `COUNT_MAX`."""
        rows = await self._database.fetch(
            self._queries["list_queues"], most=most or COUNT_MAX, now=self._database.clock.sql_now()
        )
        found = [QueueView(*row) for row in rows]
        return [queue for queue in found if namespace is None or namespace.owns(queue.name)]

    async def count_runs(self, namespace: Namespace, since: datetime) -> dict[str, int]:
        """Counts live runs by state, up to `COUNT_MAX` each, and as many of those that finished since a time."""
        first = first_id_of(since)
        rows = await self._database.fetch(
            self._queries["count_runs"],
            most=COUNT_MAX,
            first_id=first,
            finished_from=not_finished_before(first),
            namespace=namespace.name,
        )
        return {row[0]: row[1] for row in rows}

    async def count_nodes(self, namespace: Namespace | None) -> Nodes:
        """Counts the workers of one namespace, or of all. Scheduler nodes serve all namespaces."""
        row = await self._database.fetch_row(
            self._queries["count_nodes"],
            now=self._database.clock.sql_now(),
            namespace=namespace.name if namespace else None,
        )
        assert row is not None  # noqa: S101
        return Nodes(*row)
