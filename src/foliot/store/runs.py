"""Reads one run, and moves runs between states. Other modules claim, finish, expire, cancel and rescue runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import not_finished_before
from foliot.model.run import RunView
from foliot.model.states import LIVE, RunState, sources_of
from foliot.store import queries
from foliot.store.postgres import Database, Record, Transaction

decode_json = msgspec.json.Decoder().decode
BETWEEN_ATTEMPTS = LIVE - {RunState.RUNNING}


class Runs:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("runs")

    async def move_runs(self, run_ids: Sequence[UUID], target: RunState) -> list[UUID]:
        """Returns the runs that moved. No attempt begins or ends, so neither `running` nor a terminal state can be the
        target."""
        if target not in BETWEEN_ATTEMPTS:
            raise ValueError(f"a run is not moved to {target}")
        sources = sorted(sources_of(target) & BETWEEN_ATTEMPTS)
        rows = await self._database.fetch(self._queries["move_runs"], ids=run_ids, target=target, sources=sources)
        return [row[0] for row in rows]

    async def close_runs(self, run_ids: Sequence[UUID], target: RunState, reason: str) -> list[UUID]:
        """Ends runs that no worker holds. Returns their ids."""
        if target not in (RunState.CANCELLED, RunState.SKIPPED):
            raise ValueError(f"a run is not closed as {target}")
        sources = sorted(sources_of(target) & BETWEEN_ATTEMPTS)
        rows = await self._database.fetch(
            self._queries["close_runs"],
            ids=run_ids,
            target=target,
            reason=reason,
            sources=sources,
            now=self._database.clock.sql_now(),
        )
        return [row[0] for row in rows]

    async def get_run(self, run_id: UUID, *, within: Transaction | None = None) -> RunView | None:
        row = await (within or self._database).fetch_row(
            self._queries["get_run"], run_id=run_id, finished_from=not_finished_before(run_id)
        )
        return _view(row) if row else None


def _view(row: Record) -> RunView:
    fields = dict(row)
    fields["state"] = RunState(fields["state"])
    for name in ("payload", "options", "result", "error", "progress", "cancel", "awaits"):
        fields[name] = None if fields[name] is None else _from_json(fields[name])
    fields["payload"] = fields["payload"] or {}
    return RunView(**fields)


def _from_json(text: str) -> Any:
    try:
        return decode_json(text)
    except (msgspec.DecodeError, RecursionError):
        # Valid JSON that Python can't decode, such as a lone surrogate or deep nesting, is passed on unchanged.
        return msgspec.Raw(text)
