"""Reads what the conditions of alerts look at, in all namespaces at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.model.ids import SHARDS
from foliot.store import queries
from foliot.store.alert_endings import Labels, labels_of
from foliot.store.postgres import Database

QUEUES_MAX = 1000
TASKS_MAX = 1000
WORKERS_MAX = 10_000
JOBS_MAX = 500
HEAD = 200
SCAN = 10_000
LATE_IN_SHARD_MAX = 50
ALL_SHARDS = tuple(range(SHARDS))


@dataclass(frozen=True, slots=True)
class QueueLine:
    queue: str
    oldest_at: datetime
    ready: int
    workers: int
    is_paused: bool


@dataclass(frozen=True, slots=True)
class UnservedTask:
    queue: str
    task: str
    since: datetime
    waiting: int


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    task: str
    failures: int
    since: datetime


@dataclass(frozen=True, slots=True)
class FailureGroup:
    labels: Labels
    number: int
    run_ids: Sequence[UUID]
    first_at: datetime


@dataclass(frozen=True, slots=True)
class JobTick:
    labels: Labels
    at: datetime


@dataclass(frozen=True, slots=True)
class JobProgress:
    name: str
    exists: bool
    unstarted: int
    """Live runs that are overdue and have not started."""
    unstarted_since: datetime | None
    unfinished: int
    unfinished_since: datetime | None
    started_at: datetime | None
    succeeded_at: datetime | None


@dataclass(frozen=True, slots=True)
class LatestDuration:
    labels: Labels
    run_id: UUID
    started_at: datetime
    seconds: float
    is_running: bool
    usual_seconds: float | None
    number: int


class AlertConditions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("alert_conditions")

    async def queue_lags(self) -> list[QueueLine]:
        rows = await self._database.fetch(self._queries["queue_lags"], limit=QUEUES_MAX, now=self._now())
        return [QueueLine(*row) for row in rows if row[1] is not None]

    async def tasks_without_worker(self) -> list[UnservedTask]:
        rows = await self._database.fetch(
            self._queries["tasks_without_worker"], head=HEAD, limit=TASKS_MAX, now=self._now()
        )
        return [UnservedTask(*row) for row in rows]

    async def open_circuits(self) -> list[OpenCircuit]:
        rows = await self._database.fetch(self._queries["open_circuits"], limit=TASKS_MAX)
        return [OpenCircuit(*row) for row in rows]

    async def live_workers(self) -> list[tuple[str, list[str]]]:
        """The name and the queues of each worker."""
        rows = await self._database.fetch(self._queries["live_workers"], limit=WORKERS_MAX, now=self._now())
        return [(row[0], row[1]) for row in rows]

    async def count_live_schedulers(self) -> int:
        return int(await self._database.fetch_value(self._queries["count_live_schedulers"], now=self._now()))

    async def unreplayed_failures(self, since: datetime) -> list[FailureGroup]:
        rows = await self._database.fetch(self._queries["unreplayed_failures"], since=since, scan=SCAN)
        return [FailureGroup(labels_of(*row[:4]), row[4], row[5], row[6]) for row in rows]

    async def missed_ticks(self, noted_from: datetime) -> list[JobTick]:
        rows = await self._database.fetch(self._queries["missed_ticks"], noted_from=noted_from, limit=JOBS_MAX)
        return [JobTick(labels_of(*row[:4]), row[4]) for row in rows]

    async def later_ticks(self, missed: Mapping[str, datetime]) -> set[str]:
        """The jobs that have fired since the tick that they missed."""
        rows = await self._database.fetch(
            self._queries["later_ticks"], names=list(missed), missed=list(missed.values())
        )
        return {row[0] for row in rows}

    async def late_jobs(self, late_from: float) -> list[JobTick]:
        rows = await self._database.fetch(
            self._queries["late_jobs"],
            shards=ALL_SHARDS,
            late_from=late_from,
            each=LATE_IN_SHARD_MAX,
            now=self._now(),
        )
        return [JobTick(labels_of(*row[:4]), row[4]) for row in rows]

    async def job_progress(self, asked: Sequence[tuple[str, datetime, datetime]]) -> list[JobProgress]:
        """Of each name: since when starts and successes count, and before when a due run is overdue."""
        rows = await self._database.fetch(
            self._queries["job_progress"],
            names=[one[0] for one in asked],
            since=[one[1] for one in asked],
            overdue_from=[one[2] for one in asked],
        )
        return [JobProgress(*row) for row in rows]

    async def running_jobs(self, started_before: datetime) -> list[str]:
        rows = await self._database.fetch(self._queries["running_jobs"], limit=JOBS_MAX, started_before=started_before)
        return [row[0] for row in rows]

    async def latest_durations(self, names: Sequence[str], since: datetime) -> list[LatestDuration]:
        rows = await self._database.fetch(
            self._queries["latest_durations"], names=names[:JOBS_MAX], since=since, now=self._now()
        )
        return [LatestDuration(labels_of(*row[:4]), *row[4:]) for row in rows]

    async def failing_archive(self) -> tuple[datetime, str] | None:
        row = await self._database.fetch_row(self._queries["failing_archive"])
        return None if row is None or row[0] is None else (row[0], row[1])

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()
