"""Writes the outcomes of attempts: finishes, retries and releases runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from foliot.model.failure_fingerprint import error_pattern
from foliot.model.ids import none_finished_before
from foliot.model.outcome import Outcome
from foliot.model.priority import aging_microseconds
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.arrays import array_text, columns, optional_column
from foliot.store.postgres import Database

# State, reason, error and output.
SUCCEEDED_QUIETLY = (RunState.SUCCEEDED, None, None, None)


class Outcomes:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("outcomes")
        self._finish_runs, self._succeed_runs = self._queries["finish_runs"], self._queries["succeed_runs"]

    async def finish_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        """Returns the number of runs finished. The others no longer belonged to this worker."""
        query, arguments = self._finishing(worker_id, outcomes)
        return await self._database.execute(query, *arguments)

    async def finish_in(self, session: Any, worker_id: UUID, outcome: Outcome) -> bool:
        """Finishes one run inside a transaction that the caller commits. Returns False if the run no longer belongs to
        this worker."""
        query, arguments = self._finishing(worker_id, [outcome])
        return str(await session.execute(query.sql, *arguments)).endswith(" 1")

    def _finishing(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> tuple[queries.Query, tuple[object, ...]]:
        ids, tokens, now = (
            [o.run_id for o in outcomes],
            array_text(o.token for o in outcomes),
            self._database.clock.sql_now(),
        )
        said = [(o.state, o.reason, o.error, o.output) for o in outcomes]
        if said.count(SUCCEEDED_QUIETLY) == len(said):
            return self._succeed_runs, (worker_id, ids, tokens, optional_column([o.result for o in outcomes]), now)
        states, reasons, errors, outputs = columns(said, 4)
        patterns = [error_pattern(o.error) if o.state is RunState.FAILED else None for o in outcomes]
        told = [optional_column(values) for values in (reasons, [o.result for o in outcomes], errors, outputs)]
        return self._finish_runs, (worker_id, ids, tokens, states, *told, now, optional_column(patterns))

    async def retry_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        given = columns([(o.run_id, o.token, o.reason, o.delay_seconds, o.error, o.output) for o in outcomes], 6)
        arguments = (worker_id, *given, self._database.clock.sql_now(), self._aging)
        return await self._database.execute(self._queries["retry_runs"], *arguments)

    async def release_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        given = columns([(o.run_id, o.token) for o in outcomes], 2)
        return await self._database.execute(self._queries["release_runs"], worker_id, *given)

    async def note_refused(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> None:
        """Notes at lost attempts that their outcomes came too late."""
        given = columns([(o.run_id, o.token) for o in outcomes], 2)
        await self._database.execute(
            self._queries["note_refused"],
            *given,
            worker_id,
            none_finished_before(given[0]),
            self._database.clock.sql_now(),
        )

    async def count_written(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        given = columns([(o.run_id, o.token) for o in outcomes], 2)
        return int(
            await self._database.fetch_value(
                self._queries["count_written"], *given, worker_id, none_finished_before(given[0])
            )
        )
