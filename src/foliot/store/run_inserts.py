"""Inserts new runs. A repetition after a lost answer changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg
import msgspec

from foliot.errors import StoreUnavailable
from foliot.model.fairness import FAIR_STEP
from foliot.model.ids import none_finished_before
from foliot.model.priority import aging_microseconds
from foliot.model.run import NewRun, StoredRun
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.arrays import array_text, ids_text, json_array, optional_column
from foliot.store.postgres import Beside, Database, Record, Transaction

decode_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode
NO_PAYLOAD = b"null"
PAYLOADS_MAX = 100_000_000
"""In characters. PostgreSQL accepts no JSON array larger than 256 megabytes."""


class RunInserts:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("run_inserts")
        self._insert_alike = self._queries["insert_alike"]
        self._insert_runs, self._insert_new_runs = self._queries["insert_runs"], self._queries["insert_new_runs"]
        self._insert_fair_runs = self._queries["insert_fair_runs"]

    async def insert_runs(
        self, runs: Sequence[NewRun], *, within: Transaction | None = None, beside: Beside | None = None
    ) -> dict[UUID, StoredRun]:
        """Stores all runs or none. Repeating it with the same ids changes nothing, and returns the stored runs.

        A run whose unique key belongs to another live run is not stored, and is not in the answer.
        """
        if within is not None:
            return await self._insert_within(within, runs, is_repetition=within.is_repetition)
        source = beside or self._database
        try:
            if _are_alike(runs) and len(payloads := json_array([run.payload for run in runs])) <= PAYLOADS_MAX:
                ids = [run.id for run in runs]
                arguments = self._alike(runs[0], ids_text(ids), payloads)
                ((now, state, due_at),) = await source.fetch(self._insert_alike, *arguments, is_repeatable=False)
                return dict.fromkeys(ids, StoredRun(RunState(state), due_at, now))
            if all(run.unique_key is None for run in runs):
                query, arguments = self._inserting(runs, None, is_new=True)
                return self._stored(runs, await source.fetch(query, *arguments, is_repeatable=False))
        except asyncpg.UniqueViolationError:
            pass
        except StoreUnavailable as error:
            if not error.is_doubtful:
                raise
        return await self._insert_again(runs, beside)

    async def insert_alike(self, one: NewRun, ids: Sequence[str], payloads: str) -> StoredRun:
        """Stores runs that equal `one`, which has no unique key, except for their ids and payloads. No object is built
        for each run.

        `payloads` is a JSON array. Returns the first run; the others equal it, unless the insert was repeated.
        """
        if len(payloads) <= PAYLOADS_MAX and not one.is_fair:
            try:
                arguments = self._alike(one, array_text(ids), payloads)
                ((now, state, due_at),) = await self._database.fetch(
                    self._insert_alike, *arguments, is_repeatable=False
                )
                return StoredRun(RunState(state), due_at, now)
            except asyncpg.UniqueViolationError:
                pass
            except StoreUnavailable as error:
                if not error.is_doubtful:
                    raise
        texts = [None if text == NO_PAYLOAD else text.decode() for text in map(bytes, decode_texts(payloads))]
        runs = [
            msgspec.structs.replace(one, id=UUID(run_id), payload=text) for run_id, text in zip(ids, texts, strict=True)
        ]
        stored = await (self.insert_runs(runs) if one.is_fair else self._insert_again(runs))
        return stored[runs[0].id]

    def _alike(self, one: NewRun, ids: str, payloads: str) -> tuple[object, ...]:
        common = (
            one.task,
            one.queue,
            one.name,
            one.priority,
            one.due_at,
            one.delay_seconds,
            one.options,
            one.expires_at,
        )
        return (ids, payloads, *common, self._database.clock.sql_now(), self._aging)

    async def _insert_again(self, runs: Sequence[NewRun], beside: Beside | None = None) -> dict[UUID, StoredRun]:
        """Inserts runs of which some may be stored already, or even finished."""

        async def work(within: Transaction) -> dict[UUID, StoredRun]:
            return await self._insert_within(within, runs, is_repetition=True, beside=beside)

        return await self._database.in_transaction("insert_runs", work)

    async def _insert_within(
        self, within: Transaction, runs: Sequence[NewRun], *, is_repetition: bool, beside: Beside | None = None
    ) -> dict[UUID, StoredRun]:
        ids = [run.id for run in runs]
        finished_from = none_finished_before(ids) if is_repetition else None
        query, arguments = self._inserting(runs, finished_from)
        rows = await within.fetch(query, *arguments)
        number = rows[0][1]
        if beside is not None:
            # After the insert, which waits for a first attempt that is still running. So this sees what that one wrote.
            await beside.write_again(within)
        if is_repetition:
            number -= await within.fetch_value(self._queries["remove_finished"], ids=ids, finished_from=finished_from)
        if number < len(ids):
            return await self.find_runs(ids, within=within)
        return self._stored(runs, rows)

    def _inserting(
        self, runs: Sequence[NewRun], finished_from: datetime | None, *, is_new: bool = False
    ) -> tuple[queries.Query, tuple[object, ...]]:
        arguments = (
            [run.id for run in runs],
            [run.task for run in runs],
            [run.queue for run in runs],
            optional_column([run.name for run in runs]),
            [run.priority for run in runs],
            optional_column([run.due_at for run in runs]),
            optional_column([run.delay_seconds for run in runs]),
            optional_column([run.payload for run in runs]),
            optional_column([run.options for run in runs]),
            self._database.clock.sql_now(),
            self._aging,
            finished_from,
            optional_column([run.unique_key for run in runs]),
            optional_column([run.expires_at for run in runs]),
        )
        if any(run.is_fair for run in runs):
            return self._insert_fair_runs, (*arguments, FAIR_STEP)
        return self._insert_new_runs if is_new else self._insert_runs, arguments

    def _stored(self, runs: Sequence[NewRun], rows: Sequence[Record]) -> dict[UUID, StoredRun]:
        """The rows describe only the runs that are not ready at once."""
        now = rows[0][0]
        stored = dict.fromkeys((run.id for run in runs), StoredRun(RunState.READY, now, now))
        for _, _, run_id, state, due_at in rows:
            if run_id is not None:
                stored[run_id] = StoredRun(RunState(state), due_at, now)
        return stored

    async def find_runs(self, run_ids: Sequence[UUID], *, within: Transaction | None = None) -> dict[UUID, StoredRun]:
        rows = await (within or self._database).fetch(
            self._queries["find_runs"], ids=run_ids, finished_from=none_finished_before(run_ids)
        )
        return {row[0]: StoredRun(RunState(row[1]), row[2], row[3]) for row in rows}


def _are_alike(runs: Sequence[NewRun]) -> bool:
    """Whether the runs differ only in their ids and payloads, and none can conflict with another run."""
    if not runs or any(run.unique_key is not None for run in runs):
        return False
    seen = {
        (run.task, run.queue, run.name, run.priority, run.due_at, run.delay_seconds, run.options,
            run.expires_at) for run in runs
    }  # fmt: skip
    return len(seen) == 1 and not runs[0].is_fair
