"""Reads the state of an installation for `foliot doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.store import queries
from foliot.store.postgres import Database

decode_queues = msgspec.json.Decoder(dict[str, int]).decode


@dataclass(frozen=True, slots=True)
class LiveWorker:
    name: str
    queues: dict[str, int]
    started_at: datetime
    draining_at: datetime | None
    silent_seconds: float


@dataclass(frozen=True, slots=True)
class Failure:
    run_id: UUID
    task: str
    queue: str
    reason: str | None
    attempt: int
    finished_at: datetime
    kind: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class ExportState:
    name: str
    at: datetime
    """The end of the last run that was sent."""
    is_running: bool
    behind_seconds: float


class Diagnosis:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("diagnosis")

    async def list_live_workers(self, limit: int) -> list[LiveWorker]:
        rows = await self._database.fetch(
            self._queries["list_live_workers"], now=self._database.clock.sql_now(), limit=limit
        )
        return [LiveWorker(row[0], decode_queues(row[1]), *row[2:]) for row in rows]

    async def list_last_failures(self, limit: int) -> list[Failure]:
        return [Failure(*row) for row in await self._database.fetch(self._queries["list_last_failures"], limit=limit)]

    async def list_exports(self) -> list[ExportState]:
        rows = await self._database.fetch(self._queries["list_exports"], now=self._database.clock.sql_now())
        return [ExportState(*row) for row in rows]
