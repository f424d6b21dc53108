"""Runs that wait for a signal."""

from __future__ import annotations

from uuid import UUID

from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database


class Signals:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("signals")

    async def signal_run(self, run_id: UUID, signal: str) -> tuple[str, RunState] | None:
        """Returns the queue and state of the run, or None if it does not wait for a signal or has received it."""
        row = await self._database.fetch_row(
            self._queries["signal_run"], run_id=run_id, signal=signal, now=self._database.clock.sql_now()
        )
        return (row[0], RunState(row[1])) if row else None

    async def time_out_signals(self, limit: int) -> list[str]:
        """Returns the queue of each released run."""
        return [
            row[0]
            for row in await self._database.fetch(
                self._queries["time_out_signals"], limit=limit, now=self._database.clock.sql_now()
            )
        ]
