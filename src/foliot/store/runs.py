"""Stores, claims, finishes, retries, releases and reads runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from foliot.errors import StoreUnavailable
from foliot.model.fairness import FAIR_STEP
from foliot.model.fingerprint import WORKER_LOST_PATTERN, error_pattern
from foliot.model.ids import made_at, not_finished_before
from foliot.model.outcome import Outcome
from foliot.model.priority import aging_microseconds
from foliot.model.run import Claim, NewRun, RunView, StoredRun
from foliot.model.states import LIVE, RunState, sources_of
from foliot.store import queries
from foliot.store.arrays import array_text, columns, ids_text, json_array
from foliot.store.postgres import Beside, Database, Record, Transaction

decode_json = msgspec.json.Decoder().decode
decode_texts = msgspec.json.Decoder(list[msgspec.Raw]).decode
NO_PAYLOAD = b"null"
LIMITED_SECONDS = 10.0
PAYLOADS_MAX = 100_000_000
"""Characters: PostgreSQL takes no JSON array of more than 256 megabytes."""
# The state, and no reason, error or output.
SUCCEEDED_QUIETLY = (RunState.SUCCEEDED, None, None, None)
BETWEEN_ATTEMPTS = LIVE - {RunState.RUNNING}


@dataclass(frozen=True, slots=True)
class Lost:
    requeued: int
    buried: int
    queues: tuple[str, ...]
    attempts: tuple[tuple[UUID, int], ...] = ()
    """Run and token of each."""


class Runs:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("runs")
        self._finish_runs, self._succeed_runs = self._queries["finish_runs"], self._queries["succeed_runs"]
        self._insert_alike = self._queries["insert_alike"]
        self._insert_runs, self._insert_new_runs = self._queries["insert_runs"], self._queries["insert_new_runs"]
        self._insert_fair_runs = self._queries["insert_fair_runs"]

    async def insert_runs(
        self, runs: Sequence[NewRun], *, within: Transaction | None = None, beside: Beside | None = None
    ) -> dict[UUID, StoredRun]:
        """Stores all of them or none. Sending the same ids again changes nothing and answers with what is there.

        A run whose unique key is that of another live run is not stored, and is not in the answer.
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
        """As `insert_runs`, for runs that are like `one`, which has no unique key, but for these. Nothing is made of
        each of them.

        `payloads` is a JSON array. Answers for the first; the others are as it is, unless this had to be sent again.
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
        """For runs of which some may be there, or may be over already."""

        async def work(within: Transaction) -> dict[UUID, StoredRun]:
            return await self._insert_within(within, runs, is_repetition=True, beside=beside)

        return await self._database.in_transaction("insert_runs", work)

    async def _insert_within(
        self, within: Transaction, runs: Sequence[NewRun], *, is_repetition: bool, beside: Beside | None = None
    ) -> dict[UUID, StoredRun]:
        ids = [run.id for run in runs]
        finished_from = _earliest(ids) if is_repetition else None
        query, arguments = self._inserting(runs, finished_from)
        rows = await within.fetch(query, *arguments)
        number = rows[0][1]
        if beside is not None:
            # After the insert, which has waited for the first one should that still be under way: so this sees what the
            # first one wrote.
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
            _column([run.name for run in runs]),
            [run.priority for run in runs],
            _column([run.due_at for run in runs]),
            _column([run.delay_seconds for run in runs]),
            _column([run.payload for run in runs]),
            _column([run.options for run in runs]),
            self._database.clock.sql_now(),
            self._aging,
            finished_from,
            _column([run.unique_key for run in runs]),
            _column([run.expires_at for run in runs]),
        )
        if any(run.is_fair for run in runs):
            return self._insert_fair_runs, (*arguments, FAIR_STEP)
        return self._insert_new_runs if is_new else self._insert_runs, arguments

    def _stored(self, runs: Sequence[NewRun], rows: Sequence[Record]) -> dict[UUID, StoredRun]:
        """The rows tell of those that are not ready at once."""
        now = rows[0][0]
        stored = dict.fromkeys((run.id for run in runs), StoredRun(RunState.READY, now, now))
        for _, _, run_id, state, due_at in rows:
            if run_id is not None:
                stored[run_id] = StoredRun(RunState(state), due_at, now)
        return stored

    async def find_runs(self, run_ids: Sequence[UUID], *, within: Transaction | None = None) -> dict[UUID, StoredRun]:
        rows = await (within or self._database).fetch(
            self._queries["find_runs"], ids=run_ids, finished_from=_earliest(run_ids)
        )
        return {row[0]: StoredRun(RunState(row[1]), row[2], row[3]) for row in rows}

    async def claim_runs(self, worker_id: UUID, slots: Mapping[str, int], tasks: Sequence[str]) -> list[Claim]:
        """Up to the given slots of each queue that has no limit. A claim whose answer got lost is in doubt: see
        `recover_claims`."""
        arguments = (list(slots), list(slots.values()), tasks, worker_id, self._database.clock.sql_now(), False)
        return [
            Claim(*row)
            for row in await self._database.fetch(self._queries["claim_runs"], *arguments, is_repeatable=False)
        ]

    async def claim_limited_runs(self, worker_id: UUID, queue: str, slots: int, tasks: Sequence[str]) -> list[Claim]:
        """The same from a queue that has a limit: one worker at a time."""
        arguments = ([queue], [slots], tasks, worker_id, self._database.clock.sql_now(), True)
        async with self._database.transaction(statement_seconds=LIMITED_SECONDS) as session:
            await session.fetchval(self._queries["take_queue"].sql, queue)
            return [Claim(*row) for row in await session.fetch(self._queries["claim_runs"].sql, *arguments)]

    async def recover_claims(self, worker_id: UUID, held: Sequence[tuple[UUID, int]]) -> list[Claim]:
        """What the worker owns beside the runs and tokens that it holds."""
        rows = await self._database.fetch(self._queries["recover_claims"], worker_id, *columns(held, 2))
        return [Claim(*row) for row in rows]

    async def finish_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        """The number written; the others were no longer this worker's."""
        query, arguments = self._finishing(worker_id, outcomes)
        return await self._database.execute(query, *arguments)

    async def finish_in(self, session: Any, worker_id: UUID, outcome: Outcome) -> bool:
        """Finishes one run inside a transaction that the caller commits. False: the run is no longer this worker's."""
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
            return self._succeed_runs, (worker_id, ids, tokens, _column([o.result for o in outcomes]), now)
        states, reasons, errors, outputs = columns(said, 4)
        patterns = [error_pattern(o.error) if o.state is RunState.FAILED else None for o in outcomes]
        told = [_column(values) for values in (reasons, [o.result for o in outcomes], errors, outputs)]
        return self._finish_runs, (worker_id, ids, tokens, states, *told, now, _column(patterns))

    async def retry_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        given = columns([(o.run_id, o.token, o.reason, o.delay_seconds, o.error, o.output) for o in outcomes], 6)
        arguments = (worker_id, *given, self._database.clock.sql_now(), self._aging)
        return await self._database.execute(self._queries["retry_runs"], *arguments)

    async def release_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        given = columns([(o.run_id, o.token) for o in outcomes], 2)
        return await self._database.execute(self._queries["release_runs"], worker_id, *given)

    async def count_written(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        given = columns([(o.run_id, o.token) for o in outcomes], 2)
        return int(
            await self._database.fetch_value(self._queries["count_written"], *given, worker_id, _earliest(given[0]))
        )

    async def promote_due_runs(self, limit: int) -> list[str]:
        """The queue of each run that became ready."""
        rows = await self._database.fetch(self._queries["promote_due_runs"], limit, self._database.clock.sql_now())
        return [row[0] for row in rows]

    async def seconds_until_due(self) -> float | None:
        found: float | None = await self._database.fetch_value(
            self._queries["seconds_until_due"], now=self._database.clock.sql_now()
        )
        return found

    async def ready_queues(self, limit: int) -> list[str]:
        return [row[0] for row in await self._database.fetch(self._queries["ready_queues"], limit=limit)]

    async def move_runs(self, run_ids: Sequence[UUID], target: RunState) -> list[UUID]:
        """Those that moved. No attempt begins or ends by it, so neither `running` nor a terminal state can be a
        target."""
        if target not in BETWEEN_ATTEMPTS:
            raise ValueError(f"a run is not moved to {target}")
        sources = sorted(sources_of(target) & BETWEEN_ATTEMPTS)
        rows = await self._database.fetch(self._queries["move_runs"], ids=run_ids, target=target, sources=sources)
        return [row[0] for row in rows]

    async def close_runs(self, run_ids: Sequence[UUID], target: RunState, reason: str) -> list[UUID]:
        """Ends runs that no worker holds; those that ended."""
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

    async def expire_runs(self, limit: int) -> int:
        """The number that ended."""
        return await self._database.execute(
            self._queries["expire_runs"], limit=limit, now=self._database.clock.sql_now()
        )

    async def mark_cancelled(
        self, run_ids: Sequence[UUID], message: str, *, is_forced: bool
    ) -> dict[UUID, UUID | None]:
        """Those that are live, and who holds them."""
        rows = await self._database.fetch(
            self._queries["mark_cancelled"], ids=run_ids, message=message, is_forced=is_forced
        )
        return {row[0]: row[1] for row in rows}

    async def close_cancelled(self, limit: int) -> dict[UUID, UUID | None]:
        """Those that ended, and who held them."""
        rows = await self._database.fetch(
            self._queries["close_cancelled"], limit=limit, now=self._database.clock.sql_now()
        )
        return {row[0]: row[1] for row in rows}

    async def lose_runs(self, limit: int, lost_attempts_max: int) -> Lost:
        row = await self._database.fetch_row(
            self._queries["lose_runs"],
            limit=limit,
            lost_max=lost_attempts_max,
            now=self._database.clock.sql_now(),
            pattern=WORKER_LOST_PATTERN,
        )
        return Lost(row[0], row[1], tuple(row[2]), tuple(zip(row[3], row[4], strict=True))) if row else Lost(0, 0, ())

    async def get_run(self, run_id: UUID, *, within: Transaction | None = None) -> RunView | None:
        row = await (within or self._database).fetch_row(
            self._queries["get_run"], run_id=run_id, finished_from=not_finished_before(run_id)
        )
        return _view(row) if row else None


def _column(values: Sequence[Any]) -> Sequence[Any]:
    """Nothing at all, where no run has such a value."""
    return values if any(value is not None for value in values) else []


def _are_alike(runs: Sequence[NewRun]) -> bool:
    """But for ids and payloads; and nothing of theirs can be in the way of another run."""
    if not runs or any(run.unique_key is not None for run in runs):
        return False
    seen = {
        (run.task, run.queue, run.name, run.priority, run.due_at, run.delay_seconds, run.options, run.expires_at) for run in runs
    }  # fmt: skip
    return len(seen) == 1 and not runs[0].is_fair


def _earliest(run_ids: Sequence[UUID]) -> datetime:
    return not_finished_before(min(run_ids, key=made_at))


def _view(row: Record) -> RunView:
    fields = dict(row)
    fields["state"] = RunState(fields["state"])
    for name in ("payload", "options", "result", "error", "progress", "cancel"):
        fields[name] = None if fields[name] is None else _from_json(fields[name])
    fields["payload"] = fields["payload"] or {}
    return RunView(**fields)


def _from_json(text: str) -> Any:
    try:
        return decode_json(text)
    except (msgspec.DecodeError, RecursionError):
        # A result may be valid JSON and yet no text, such as an escaped lone surrogate, or deeper than we are: it is
        # handed on as it is.
        return msgspec.Raw(text)
