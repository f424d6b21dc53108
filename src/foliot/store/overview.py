"""Counts runs, workers and nodes, and lists queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.model.ids import first_id_of, not_finished_before
from foliot.model.namespace import Namespace
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
    """States of which there are more, in all queues together, than were counted."""


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
        """Those of a namespace, or of all. Nothing is counted further than to `most`, or to `COUNT_MAX`."""
        rows = await self._database.fetch(
            self._queries["list_queues"], most=most or COUNT_MAX, now=self._database.clock.sql_now()
        )
        found = [QueueView(*row) for row in rows]
        return [queue for queue in found if namespace is None or namespace.owns(queue.name)]

    async def count_runs(self, namespace: Namespace, since: datetime) -> dict[str, int]:
        """By state, up to `COUNT_MAX` each; finished ones since an instant, up to that number together."""
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
        """The workers are those of the namespace, or of all; scheduler nodes work for all."""
        row = await self._database.fetch_row(
            self._queries["count_nodes"],
            now=self._database.clock.sql_now(),
            namespace=namespace.name if namespace else None,
        )
        assert row is not None  # noqa: S101
        return Nodes(*row)
