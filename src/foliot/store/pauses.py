"""Pauses of a queue, of a task, of a recurring job, or of everything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.postgres import Database

PauseKind = Literal["queue", "task", "everything"]
JOBS_MAX = 1000
"""The paused jobs that are looked at."""


@dataclass(frozen=True, slots=True)
class Pause:
    kind: Literal["queue", "task", "everything", "job"]
    name: str
    paused_at: datetime
    until_at: datetime | None
    reason: str | None
    actor: str | None


class Pauses:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("pauses")

    async def put_pause(
        self, kind: PauseKind, name: str, until: datetime | None, reason: str | None, actor: str | None
    ) -> None:
        await self._database.execute(
            self._queries["put_pause"],
            kind=kind,
            name=name,
            until=until,
            reason=reason,
            actor=actor,
            now=self._database.clock.sql_now(),
        )

    async def delete_pause(self, kind: PauseKind, name: str) -> bool:
        return bool(await self._database.fetch_value(self._queries["delete_pause"], kind=kind, name=name))

    async def list_pauses(self) -> list[Pause]:
        rows = await self._database.fetch(self._queries["list_pauses"], now=self._database.clock.sql_now())
        return [Pause(*row) for row in rows]

    async def list_job_pauses(self, namespace: Namespace) -> tuple[list[Pause], bool]:
        """The paused jobs of a namespace by name, and whether these are all."""
        rows = await self._database.fetch(
            self._queries["list_job_pauses"],
            after_name=namespace.qualified(""),
            namespace=namespace.name,
            scan=JOBS_MAX,
        )
        found = [Pause("job", *row[1:]) for row in rows if row[1] is not None]
        return found, not rows or rows[0][0] < JOBS_MAX

    async def end_pauses(self) -> list[tuple[PauseKind, str]]:
        rows = await self._database.fetch(self._queries["end_pauses"], now=self._database.clock.sql_now())
        return [(row[0], row[1]) for row in rows]
