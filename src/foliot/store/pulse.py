"""Reads the state of the installation, and the changes of the last moment, for pages that are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from foliot.model.ids import first_id_of
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database

READY_MAX = 1_000
"""The ready runs that are counted in each queue."""
SCAN_MAX = 2_000
"""The running, scheduled and held runs that are read in each state."""
CHANGES_MAX = SCAN_MAX
"""The ended, running and new runs that are read for changes."""
ACTIONS_MAX = 200
# Processes make ids by their own clocks, and transactions commit a moment after they read the clock.
ID_MARGIN = timedelta(seconds=2)
ACTION_MARGIN = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Beat:
    """The state of one namespace."""

    at: datetime
    namespace: str
    ready: int
    has_more_ready: bool
    oldest_ready_seconds: float | None
    running: int
    scheduled: int
    held: int
    uncounted_states: Sequence[str]
    """States with more runs, in all namespaces together, than were read."""
    workers: int
    draining: int
    slots: int
    unowned_shards: int
    is_read_only: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_reason: str | None
    paused_by: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """Runs that ended, started or were created, and have the rest in common."""

    kind: str
    state: RunState
    queue: str
    task: str
    job_id: UUID | None
    count: int
    run_ids: Sequence[UUID]
    parent_ids: Sequence[UUID]


@dataclass(frozen=True, slots=True)
class Action:
    namespace: str
    action: str
    target: str


class Pulse:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("pulse")

    async def take_pulse(self, namespaces: Sequence[str]) -> list[Beat]:
        rows = await self._database.fetch(
            self._queries["take_pulse"],
            namespaces=namespaces,
            most=READY_MAX,
            scan=SCAN_MAX,
            now=self._database.clock.sql_now(),
        )
        return [Beat(*row) for row in rows]

    async def list_changes(self, since: datetime, until: datetime) -> list[Change]:
        rows = await self._database.fetch(
            self._queries["list_changes"],
            since=since,
            until=until,
            first_id=first_id_of(since - ID_MARGIN),
            most=CHANGES_MAX,
        )
        return [Change(row[0], RunState(row[1]), row[2], row[3], row[4], row[5], row[6], row[7] or ()) for row in rows]

    async def list_actions(self, since: datetime) -> list[Action]:
        rows = await self._database.fetch(self._queries["list_actions"], since=since - ACTION_MARGIN, most=ACTIONS_MAX)
        return [Action(*row) for row in rows]
