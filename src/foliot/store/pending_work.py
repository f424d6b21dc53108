"""Cheap polls by which a scheduler service sees whether it has anything to do."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.store import queries
from foliot.store.postgres import Database


@dataclass(frozen=True, slots=True)
class GatesInUse:
    """The kinds of work that the gatekeeper has."""

    limits: bool = False
    circuits: bool = False
    pauses: bool = False
    parked: bool = False
    conditions: bool = False


@dataclass(frozen=True, slots=True)
class WaitsInUse:
    """The kinds of work that the resumer has."""

    cancels: bool = False
    links: bool = False
    overlaps: bool = False
    pauses: bool = False
    nudges: bool = False
    replays: bool = False


class PendingWork:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("pending_work")

    async def gates_in_use(self) -> GatesInUse:
        row = await self._database.fetch_row(self._queries["gates_in_use"], now=self._database.clock.sql_now())
        return GatesInUse(*row) if row else GatesInUse()

    async def waits_in_use(self) -> WaitsInUse:
        row = await self._database.fetch_row(self._queries["waits_in_use"], now=self._database.clock.sql_now())
        return WaitsInUse(*row) if row else WaitsInUse()
