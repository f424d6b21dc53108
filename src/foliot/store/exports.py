"""Reads the endings of runs for exporters, and keeps the place up to which each of them has exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Record

FIRST_ID = UUID(int=0)
FRESH_SECONDS = 120.0
decode_json = msgspec.json.Decoder().decode
STATES = {str(state): state for state in RunState}
Place = tuple[datetime, UUID]
"""The time of an ending and the id of its run, in the order of finishing."""


class Ending(msgspec.Struct, frozen=True, gc=False):
    """The end of a run. Made for every run, so it is of the kind that is made fastest."""

    id: UUID
    name: str | None
    task: str
    queue: str
    state: RunState
    reason: str | None
    attempt: int
    job_id: UUID | None
    parent_id: UUID | None
    started_at: datetime | None
    at: datetime

    @property
    def place(self) -> Place:
        return self.at, self.id


class TracedEnding(Ending, frozen=True, gc=False):
    """The end of a run, with everything that its spans tell."""

    created_at: datetime
    due_at: datetime
    token: int
    lost: int
    worker_id: UUID | None
    step: str | None
    upstream: Sequence[UUID] | None
    rerun_of: UUID | None
    tick_at: datetime | None
    traceparent: str | None
    notifies: str | None
    concurrency_key: str | None
    rate_key: str | None
    error_kind: str | None
    error_message: str | None


@dataclass(frozen=True, slots=True)
class Happening:
    """The end of a run, of an attempt before the last one, or a tick that did not become a run."""

    at: datetime
    place_id: UUID
    subject: Literal["run", "attempt", "tick"]
    id: UUID
    """Of the run, or of the job that the tick belongs to."""
    token: int
    outcome: str
    reason: str | None
    attempt: int | None
    worker_id: UUID | None
    started_at: datetime | None
    tick_at: datetime | None
    until_at: datetime | None
    blocked_by: UUID | None
    error_kind: str | None
    error_message: str | None
    name: str | None
    task: str | None
    queue: str | None
    job_id: UUID | None
    parent_id: UUID | None
    step: str | None
    rerun_of: UUID | None
    tags: Sequence[str]
    created_at: datetime | None
    due_at: datetime | None

    @property
    def place(self) -> Place:
        return self.at, self.place_id


@dataclass(frozen=True, slots=True)
class EarlierAttempt:
    """An attempt before the last one."""

    run_id: UUID
    token: int
    attempt: int
    worker_id: UUID
    started_at: datetime
    at: datetime
    outcome: str
    error_kind: str | None
    error_message: str | None


class Exports:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("exports")

    async def take_export(self, name: str, owner: UUID, lease_seconds: float, horizon: datetime) -> Place | None:
        """Returns the place to continue from. None while another process holds the export."""
        row = await self._database.fetch_row(
            self._queries["take_export"],
            name=name,
            owner=owner,
            lease_seconds=lease_seconds,
            horizon=horizon,
            now=self._database.clock.sql_now(),
        )
        return None if row is None else (row[0], row[1])

    async def advance_export(self, name: str, owner: UUID, place: Place) -> bool:
        """Returns False if the export belongs to another process by now."""
        at, run_id = place
        return bool(
            await self._database.execute(self._queries["advance_export"], name=name, owner=owner, at=at, id=run_id)
        )

    async def release_export(self, name: str, owner: UUID) -> None:
        await self._database.execute(self._queries["release_export"], name=name, owner=owner)

    async def list_unexported(self, after: Place, until: datetime, limit: int) -> list[Ending]:
        rows = await self._database.fetch(
            self._queries["list_unexported"], after_at=after[0], after_id=after[1], until=until, limit=limit
        )
        return [Ending(*_values(row)) for row in rows]

    async def list_traced(self, after: Place, until: datetime, limit: int) -> list[TracedEnding]:
        rows = await self._database.fetch(
            self._queries["list_traced"], after_at=after[0], after_id=after[1], until=until, limit=limit
        )
        return [TracedEnding(*_values(row)) for row in rows]

    async def happening_horizon(self, hold_seconds: float) -> datetime:
        """Returns a time before which nothing further will appear in `list_happenings`."""
        found: datetime = await self._database.fetch_value(
            self._queries["happening_horizon"], now=self._database.clock.sql_now(), hold_seconds=hold_seconds
        )
        return found

    async def list_happenings(self, after: Place, until: datetime, limit: int) -> list[Happening]:
        rows = await self._database.fetch(
            self._queries["list_happenings"], after_at=after[0], after_id=after[1], until=until, limit=limit
        )
        return [_happening(row) for row in rows]

    async def list_lags(self) -> dict[str, float]:
        """The seconds that each export is behind."""
        rows = await self._database.fetch(
            self._queries["list_lags"], now=self._database.clock.sql_now(), fresh_seconds=FRESH_SECONDS
        )
        return {row[0]: max(0.0, row[1]) for row in rows}

    async def list_earlier_attempts(self, run_ids: Sequence[UUID], finished_from: datetime) -> list[EarlierAttempt]:
        rows = await self._database.fetch(
            self._queries["list_earlier_attempts"], run_ids=run_ids, finished_from=finished_from
        )
        return [EarlierAttempt(*row) for row in rows]

    async def find_open_circuits(self, tasks: Sequence[str]) -> dict[str, datetime]:
        return {row[0]: row[1] for row in await self._database.fetch(self._queries["find_open_circuits"], tasks=tasks)}


def _happening(row: Record) -> Happening:
    values = list(row)
    values[22] = [] if values[22] is None else decode_json(values[22])
    return Happening(*values)


def _values(row: Record) -> list[Any]:
    return [*row[:4], STATES[row[4]], *row[5:]]
