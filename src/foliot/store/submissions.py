"""Stores jobs with a unique key or an idempotency key, in one transaction with the key, so that only one can be first.

A transaction may be repeated after its answer was lost. The keys and run ids then find the rows of the first one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from foliot.errors import Conflict
from foliot.model.namespace import bare_key
from foliot.model.priority import aging_microseconds
from foliot.model.run import NewRun, StoredRun, SubmittedRun
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Record, Transaction
from foliot.store.runs import Runs

# A run that has the key may end between two statements, and another one take the key.
LOOKS = 10
BATCH = 1000


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    text: str
    """The JSON of the first answer."""
    is_new: bool


class Submissions:
    def __init__(self, database: Database, *, runs: Runs, aging_seconds: float, keep_seconds: float) -> None:
        self._database = database
        self._runs = runs
        self._aging = aging_microseconds(aging_seconds)
        self._keep_seconds = float(keep_seconds)
        self._queries = queries.load("submissions")

    async def submit(self, runs: Sequence[NewRun]) -> list[SubmittedRun]:
        """Stores all runs or none, and returns them in the order given. Raises `Conflict` for a taken unique key
        with `on_conflict: reject`."""
        if all(run.unique_key is None for run in runs):
            stored = await self._runs.insert_runs(runs)
            return [new_submission(run, stored[run.id]) for run in runs]
        return await self._database.in_transaction("submit", lambda within: self.submit_within(within, runs))

    async def submit_within(self, within: Transaction, runs: Sequence[NewRun]) -> list[SubmittedRun]:
        stored = await self._runs.insert_runs(runs, within=within)
        return [
            new_submission(run, stored[run.id]) if run.id in stored else await self._met(within, run) for run in runs
        ]

    async def once(self, key: str, fingerprint: str, work: Callable[[Transaction], Awaitable[str]]) -> KeptAnswer:
        """The answer of `work`, or its earlier answer for this key. Raises `Conflict` when the key came with another
        request."""

        async def attempt(within: Transaction) -> KeptAnswer:
            for _ in range(LOOKS):
                if await self.take_key(within, key, fingerprint):
                    text = await work(within)
                    await self.keep_answer(within, key, text)
                    return KeptAnswer(text, is_new=True)
                if (found := await self.find_answer(key, fingerprint, within=within)) is not None:
                    return found
            raise Conflict(f"idempotency_key: {bare_key(key)!r} is expiring just now; try again")

        return await self._database.in_transaction("once", attempt)

    async def take_key(self, within: Transaction, key: str, fingerprint: str) -> bool:
        arguments = (key, fingerprint, self._keep_seconds, self._database.clock.sql_now())
        return bool(await within.fetch_value(self._queries["take_key"], *arguments))

    async def keep_answer(self, within: Transaction, key: str, text: str) -> None:
        await within.execute(self._queries["keep_answer"], key, text)

    async def find_answer(self, key: str, fingerprint: str, *, within: Transaction | None = None) -> KeptAnswer | None:
        row = await (within or self._database).fetch_row(
            self._queries["find_answer"], key, self._database.clock.sql_now()
        )
        if row is None:
            return None
        if row[0] != fingerprint:
            raise Conflict(
                f"idempotency_key: {bare_key(key)!r} belongs to another request; a new request needs a new key"
            )
        return KeptAnswer(row[1], is_new=False)

    async def forget_answers(self) -> int:
        """Deletes a batch of expired keys. Returns their number."""
        return await self._database.execute(self._queries["forget_answers"], BATCH, self._database.clock.sql_now())

    async def find_unique_run(self, within: Transaction, key: str) -> SubmittedRun | None:
        row = await within.fetch_row(self._queries["find_unique_run"], key)
        return _existing(row) if row else None

    async def replace_run(self, within: Transaction, run: NewRun) -> SubmittedRun | None:
        """None when the run has started or ended."""
        row = await within.fetch_row(
            self._queries["replace_run"],
            run.unique_key,
            run.task,
            run.queue,
            run.name,
            run.priority,
            run.due_at,
            run.delay_seconds,
            run.payload,
            run.options,
            run.expires_at,
            self._database.clock.sql_now(),
            self._aging,
        )
        return _existing(row) if row else None

    async def _met(self, within: Transaction, run: NewRun) -> SubmittedRun:
        """Resolves a run that was not stored because another run has its key."""
        key = run.unique_key or ""
        for _ in range(LOOKS):
            replaced = await self.replace_run(within, run) if run.on_conflict == "replace" else None
            existing = replaced or await self.find_unique_run(within, key)
            if existing is not None and run.on_conflict == "reject":
                raise Conflict(f"unique: the run {existing.id} has the key {bare_key(key)!r} and is {existing.state}")
            if existing is not None:
                return existing
            stored = await self._runs.insert_runs([run], within=within)
            if run.id in stored:
                return new_submission(run, stored[run.id])
        raise Conflict(f"unique: runs with the key {bare_key(key)!r} come and go too fast; try again")


def new_submission(run: NewRun, stored: StoredRun) -> SubmittedRun:
    return SubmittedRun(
        run.id,
        run.name,
        run.task,
        run.queue,
        run.priority,
        stored.state,
        0,
        stored.due_at,
        stored.created_at,
        is_new=True,
    )


def _existing(row: Record) -> SubmittedRun:
    fields = dict(row)
    return SubmittedRun(**fields | {"state": RunState(fields["state"])}, is_new=False)
