"""Reads the changes of runs for the event feed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import none_finished_before
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Record

decode_json = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class RunChange:
    """The state of a run, and since when it has it."""

    id: UUID
    name: str | None
    task: str
    queue: str
    state: RunState
    reason: str | None
    attempt: int
    token: int
    job_id: UUID | None
    parent_id: UUID | None
    step: str | None
    tags: list[str]
    error: Any
    at: datetime


class RunEvents:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("run_events")

    async def ending_horizon(self, hold_seconds: float) -> datetime:
        """Returns a time before which no further ending will appear."""
        found: datetime = await self._database.fetch_value(
            self._queries["ending_horizon"], now=self._database.clock.sql_now(), hold_seconds=hold_seconds
        )
        return found

    async def list_endings(self, after: tuple[datetime, UUID], until: datetime, limit: int) -> list[RunChange]:
        return [_change(row) for row in await self._database.fetch(self._queries["list_endings"], *after, until, limit)]

    async def list_running(self, limit: int) -> list[RunChange]:
        return [_change(row) for row in await self._database.fetch(self._queries["list_running"], limit=limit)]

    async def find_changes(self, run_ids: Sequence[UUID]) -> list[RunChange]:
        rows = await self._database.fetch(
            self._queries["find_changes"],
            run_ids=run_ids,
            finished_from=none_finished_before(run_ids),
            now=self._database.clock.sql_now(),
        )
        return [_change(row) for row in rows]


def _change(row: Record) -> RunChange:
    values = list(row)
    values[4] = RunState(values[4])
    values[11] = [] if values[11] is None else decode_json(values[11])
    kind, message = (None if text is None else decode_json(text) for text in values[12:14])
    values[12:14] = [None if kind is None and message is None else {"kind": kind, "message": message}]
    return RunChange(*values)
