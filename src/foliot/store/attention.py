"""Finds what needs attention, for the overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.calendar import CalendarDays
from foliot.model.ids import SHARDS
from foliot.model.namespace import Namespace
from foliot.model.schedule import Schedule
from foliot.model.simulation import PastRun
from foliot.store import queries
from foliot.store.jobs import decode_days, decode_schedule
from foliot.store.postgres import Database, Record

LIMIT = 6
"""The most entries of a kind. One more is read, so that it is known whether there are more."""
SCAN_MAX = 2_000
FAILED_MAX = 10_000
PAST_MAX = 1_000
LATE_IN_SHARD_MAX = 50
DUE_IN_SHARD_MAX = 100
DUE_MAX = 5_000
ALL_SHARDS = tuple(range(SHARDS))
decode_tags = msgspec.json.Decoder(list[str]).decode


@dataclass(frozen=True, slots=True)
class Late:
    jobs: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class FailingJob:
    name: str
    failures: int
    failed_at: datetime
    run_id: UUID
    in_a_row: int


@dataclass(frozen=True, slots=True)
class GrowingGroup:
    fingerprint: str
    lately: int
    before: int
    last_at: datetime
    sample_id: UUID
    task: str
    message: str | None


@dataclass(frozen=True, slots=True)
class OpenCircuit:
    task: str
    failures: int
    open_until: datetime


@dataclass(frozen=True, slots=True)
class Pause:
    kind: str
    name: str
    paused_at: datetime
    until: datetime | None
    reason: str | None
    actor: str | None


@dataclass(frozen=True, slots=True)
class LateWorker:
    id: UUID
    name: str
    silent_seconds: float


@dataclass(frozen=True, slots=True)
class Approval:
    run_id: UUID
    name: str
    since: datetime
    waiting: int
    """How many runs wait for a signal."""


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A recurring job that fires soon."""

    id: UUID
    name: str
    queue: str
    task: str
    schedule: Schedule
    created_at: datetime
    fire_at: datetime
    next_at: datetime
    runs_left: int | None
    calendar: CalendarDays | None
    tags: Sequence[str]


class Attention:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("attention")

    async def count_late(self, namespace: Namespace, late_from: float) -> Late:
        row = await self._database.fetch_row(
            self._queries["count_late"],
            namespace=namespace.name,
            late_from=late_from,
            shards=ALL_SHARDS,
            most=LATE_IN_SHARD_MAX,
            now=self._database.clock.sql_now(),
        )
        assert row is not None  # noqa: S101
        return Late(row[0] if row[1] is not None else 0, row[1])

    async def count_failed(self, namespace: Namespace, since: datetime) -> tuple[int, bool]:
        """Returns also whether counting stopped at a limit."""
        row = await self._database.fetch_row(
            self._queries["count_failed"], namespace=namespace.name, since=since, most=FAILED_MAX
        )
        assert row is not None  # noqa: S101
        return row[0], row[1] >= FAILED_MAX

    async def list_failing_jobs(self, namespace: Namespace, since: datetime) -> list[FailingJob]:
        rows = await self._database.fetch(
            self._queries["list_failing_jobs"],
            namespace=namespace.name,
            since=since,
            scan=SCAN_MAX,
            limit=LIMIT + 1,
        )
        return [FailingJob(*row) for row in rows]

    async def list_growing_groups(self, namespace: Namespace, since: datetime, half: datetime) -> list[GrowingGroup]:
        rows = await self._database.fetch(
            self._queries["list_growing_groups"],
            namespace=namespace.name,
            since=since,
            half=half,
            scan=SCAN_MAX,
            limit=LIMIT + 1,
        )
        return [GrowingGroup(*row) for row in rows]

    async def list_open_circuits(self, namespace: Namespace) -> list[OpenCircuit]:
        rows = await self._database.fetch(
            self._queries["list_open_circuits"], namespace=namespace.name, limit=LIMIT + 1
        )
        return [OpenCircuit(*row) for row in rows]

    async def list_pauses(self, namespace: Namespace) -> list[Pause]:
        rows = await self._database.fetch(
            self._queries["list_everything_paused"],
            namespace=namespace.name,
            scan=SCAN_MAX,
            limit=LIMIT + 1,
            now=self._database.clock.sql_now(),
        )
        return [Pause(*row) for row in rows]

    async def list_late_workers(self, namespace: Namespace, late_share: float) -> list[LateWorker]:
        rows = await self._database.fetch(
            self._queries["list_late_workers"],
            namespace=namespace.name,
            late_share=late_share,
            limit=LIMIT + 1,
            now=self._database.clock.sql_now(),
        )
        return [LateWorker(*row) for row in rows]

    async def list_approvals(self, namespace: Namespace) -> list[Approval]:
        rows = await self._database.fetch(
            self._queries["longest_approvals"], namespace=namespace.name, scan=SCAN_MAX, limit=LIMIT + 1
        )
        return [Approval(*row) for row in rows]

    async def list_ended_jobs(self, namespace: Namespace) -> list[str]:
        rows = await self._database.fetch(
            self._queries["list_ended_jobs"], namespace=namespace.name, scan=SCAN_MAX, limit=LIMIT + 1
        )
        return [row[0] for row in rows]

    async def oldest_ready_queue(self, namespace: Namespace) -> str | None:
        """The queue whose first ready run has been due for longest."""
        found: str | None = await self._database.fetch_value(
            self._queries["oldest_ready_queue"], namespace=namespace.name
        )
        return found

    async def has_runs(self, namespace: Namespace) -> bool:
        """Looks at some runs only: a namespace with few runs beside others with very many may seem to have none."""
        return bool(
            await self._database.fetch_value(self._queries["has_runs"], namespace=namespace.name, scan=SCAN_MAX)
        )

    async def due_schedules(self, namespace: Namespace, until: datetime) -> list[DueSchedule]:
        """The jobs that fire before a time: of each shard a bounded number, the next ones first."""
        rows = await self._database.fetch(
            self._queries["due_schedules"],
            namespace=namespace.name,
            until=until,
            shards=ALL_SHARDS,
            each=DUE_IN_SHARD_MAX,
            limit=DUE_MAX,
        )
        return [_due(row) for row in rows]

    async def job_durations(self, job_ids: Sequence[UUID], since: datetime) -> dict[UUID, tuple[int, float]]:
        """How many of the latest runs of each job ended, and the 95th percentile of their seconds."""
        rows = await self._database.fetch(self._queries["job_durations"], job_ids=job_ids, since=since)
        return {row[0]: (row[1], row[2]) for row in rows if row[1]}

    async def past_runs(self, job_id: UUID, since: datetime) -> list[PastRun]:
        """When the latest runs of a job started, and how long they took."""
        rows = await self._database.fetch(self._queries["past_runs"], job_id=job_id, since=since, limit=PAST_MAX)
        return [PastRun(*row) for row in rows]


def _due(row: Record) -> DueSchedule:
    days, tags = row["days"], row["tags"]
    return DueSchedule(
        row["id"],
        row["name"],
        row["queue"],
        row["task"],
        decode_schedule(row["schedule"]),
        row["created_at"],
        row["fire_at"],
        row["next_at"],
        row["runs_left"],
        None if days is None else decode_days(days),
        () if tags is None else decode_tags(tags),
    )
