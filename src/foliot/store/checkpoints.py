"""Checkpoints of durable functions, the signals sent to them, and the runs that they call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.errors import Conflict
from foliot.model.checkpoint import Awaits, Checkpoint, CheckpointError, Kind
from foliot.model.ids import not_finished_before
from foliot.model.outcome import Outcome
from foliot.model.priority import aging_microseconds
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.arrays import columns
from foliot.store.hints import GATES_TOPIC, HintSender, worker_topic
from foliot.store.postgres import Database, Record, Transaction
from foliot.store.run_inserts import RunInserts

decode_error = msgspec.json.Decoder(CheckpointError).decode
decode_awaits = msgspec.json.Decoder(Awaits).decode
decode_json = msgspec.json.Decoder().decode
SIGNALS_MAX = 1000
NUDGES = 500
BATCH = 1000
PREVIEW = 200
FIRST = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A step that has returned, or a sleep that begins."""

    run_id: UUID
    token: int
    name: str
    kind: Kind
    function: str | None = None
    result: str | None = None
    took_seconds: float = 0.0
    wait_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CheckpointItem:
    """A checkpoint as lists show it."""

    name: str
    kind: Kind
    function: str | None
    attempt: int
    started_at: datetime
    finished_at: datetime | None
    due_at: datetime | None
    child_id: UUID | None
    result: str | None
    """The beginning of its JSON text."""
    result_bytes: int | None
    error: Any
    is_unused: bool


@dataclass(frozen=True, slots=True)
class Nudged:
    """The changes to runs whose called run or caller has ended."""

    looked_at: int = 0
    queues: frozenset[str] = frozenset()
    """Of runs that became ready."""
    holders: frozenset[UUID] = frozenset()
    """Workers that hold runs which are to end."""
    is_limited: bool = False
    """A run waits for its limits."""


@dataclass(frozen=True, slots=True)
class Signalled:
    queue: str
    state: RunState | None
    """Where the run went. None: it does not wait for this signal yet."""
    awaited: Sequence[str]
    """The signals that the run waited for."""


class Checkpoints:
    def __init__(self, database: Database, *, inserts: RunInserts, hints: HintSender, aging_seconds: float) -> None:
        self._database = database
        self._inserts = inserts
        self._hints = hints
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("checkpoints")

    # --- by the attempt that holds the run

    async def open_checkpoints(self, run_id: UUID, token: int, worker_id: UUID) -> list[Checkpoint] | None:
        """Everything recorded of a run, with the waits that have ended. None: the worker no longer holds it."""
        rows = await self._database.fetch(
            self._queries["open_checkpoints"],
            run_id=run_id,
            token=token,
            worker_id=worker_id,
            finished_from=not_finished_before(run_id),
            now=self._now(),
        )
        return [_checkpoint(row) for row in rows if row[2] is not None] if rows[0][0] else None

    async def record_checkpoints(
        self, worker_id: UUID, given: Sequence[NewCheckpoint]
    ) -> list[tuple[bool, datetime | None]]:
        """For each: whether the worker still holds the run, and until when it sleeps."""
        rows = [
            (one.run_id, one.token, one.name, one.kind, one.function, one.result, one.took_seconds, one.wait_seconds)
            for one in given
        ]
        found = await self._database.fetch(
            self._queries["record_checkpoints"], worker_id, *columns(rows, 8), self._now()
        )
        return [(row[0], row[1]) for row in found]

    async def record_in(self, session: Any, worker_id: UUID, one: NewCheckpoint) -> bool:
        """Records a step in the transaction of its effect, which the caller commits."""
        query = self._queries["record_in"]
        arguments = (one.run_id, one.token, worker_id, one.name, one.function, one.result, one.took_seconds)
        return bool(await session.fetchval(query.sql, *arguments, self._now()))

    async def await_signal(
        self, run_id: UUID, token: int, worker_id: UUID, name: str, timeout_seconds: float | None
    ) -> Checkpoint | None:
        """Begins to wait for a signal. None: the worker no longer holds the run."""
        row = await self._database.fetch_row(
            self._queries["await_signal"],
            run_id=run_id,
            token=token,
            worker_id=worker_id,
            name=name,
            timeout_seconds=timeout_seconds,
            now=self._now(),
        )
        if row is None:
            return None
        return Checkpoint(
            name,
            "signal",
            is_done=row[1],
            result=row[2],
            error=None if row[3] is None else decode_error(row[3]),
            due_at=row[4],
            left_seconds=timeout_seconds,
        )

    async def call(self, run_id: UUID, token: int, worker_id: UUID, name: str, task: str, child: NewRun) -> UUID | None:
        """Makes the run that a function calls, once: the id of the one that is there. None: the worker no longer holds
        the caller."""

        async def work(within: Transaction) -> UUID | None:
            row = await within.fetch_row(
                self._queries["begin_call"],
                run_id=run_id,
                token=token,
                worker_id=worker_id,
                name=name,
                function=task,
                child_id=child.id,
                now=self._now(),
            )
            if row is None:
                return None
            if row[1]:
                await self._inserts.insert_runs([child], within=within)
                await within.execute(self._queries["tie_child"], run_id=run_id, child_id=child.id, name=name)
            child_id: UUID = row[0]
            return child_id

        return await self._database.in_transaction("call", work)

    async def note_unused(self, run_id: UUID, token: int, worker_id: UUID, names: Sequence[str]) -> None:
        await self._database.execute(
            self._queries["note_unused"], run_id=run_id, token=token, worker_id=worker_id, names=names
        )

    async def suspend_runs(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> int:
        """The number suspended; the others were no longer this worker's. The result of an outcome is its `Awaits`."""
        ids, tokens, awaits, outputs = columns([(o.run_id, o.token, o.result, o.output) for o in outcomes], 4)

        async def work(within: Transaction) -> int:
            locked = await within.fetch(self._queries["lock_suspending"], ids=ids, tokens=tokens, worker_id=worker_id)
            await within.execute(
                self._queries["suspend_runs"],
                worker_id=worker_id,
                ids=ids,
                tokens=tokens,
                awaits=awaits,
                outputs=outputs,
                now=self._now(),
                aging=self._aging,
            )
            return len(locked)

        return await self._database.in_transaction("suspend_runs", work)

    # --- by everybody else

    async def take_nudges(self) -> Nudged:
        """Wakes the callers of runs that have ended, and asks runs to end whose callers have ended."""
        rows = await self._database.fetch(self._queries["take_nudges"], NUDGES, self._now())
        return Nudged(
            rows[0][0],
            frozenset(row[1] for row in rows if row[2] == RunState.READY),
            frozenset(row[3] for row in rows if row[3] is not None),
            any(row[2] == RunState.HELD for row in rows),
        )

    async def follow_nudges(self) -> int:
        """Wakes the callers of runs that have ended, and asks runs to end whose callers have ended. Returns how many
        runs it looked at."""
        nudged = await self.take_nudges()
        gates = [GATES_TOPIC] if nudged.is_limited else []
        self._hints.send([*nudged.queues, *map(worker_topic, nudged.holders), *gates])
        return nudged.looked_at

    async def wake_run(self, run_id: UUID) -> None:
        await self._database.execute(self._queries["wake_run"], run_id=run_id, now=self._now())

    async def signal(self, run_id: UUID, name: str | None, signal: str) -> Signalled | None:
        """Sends a signal by name; without one, the only one that the run waits for. None: the run has ended, or was
        asked to end. Raises `Conflict` for a signal that can't be kept."""

        async def work(within: Transaction) -> Signalled | None:
            row = await within.fetch_row(self._queries["lock_run"], run_id=run_id)
            if row is None or row[2]:
                return None
            awaited = (decode_awaits(row[1]).signals or []) if row[1] else []
            chosen = name or _only(awaited)
            if not await within.fetch_value(
                self._queries["keep_signal"],
                run_id=run_id,
                name=chosen,
                signal=signal,
                most=SIGNALS_MAX,
                now=self._now(),
            ):
                raise Conflict(f"the run has had its signal {chosen!r}, or has {SIGNALS_MAX} signals already")
            state = await within.fetch_value(
                self._queries["wake_signalled"], run_id=run_id, name=chosen, now=self._now()
            )
            return Signalled(row[0], None if state is None else RunState(state), awaited)

        return await self._database.in_transaction("signal", work)

    async def list_checkpoints(self, run_id: UUID, *, after: str | None, limit: int) -> list[CheckpointItem]:
        """In the order in which they began."""
        rows = await self._database.fetch(
            self._queries["list_checkpoints"], run_id=run_id, after=after, preview=PREVIEW, limit=limit
        )
        return [_item(row) for row in rows]

    async def forget_checkpoints(
        self, finished_before: datetime, after: tuple[datetime, UUID]
    ) -> tuple[datetime, UUID] | None:
        """Where to look on; None at the end."""
        row = await self._database.fetch_row(
            self._queries["forget_checkpoints"],
            after_at=after[0],
            after_id=after[1],
            limit=BATCH,
            finished_before=finished_before,
        )
        return (row[1], row[2]) if row is not None and row[0] == BATCH else None

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()


def _item(row: Record) -> CheckpointItem:
    fields = dict(row)
    return CheckpointItem(**fields | {"error": None if row["error"] is None else decode_json(row["error"])})


def _only(awaited: Sequence[str]) -> str:
    if len(awaited) != 1:
        which = f"it waits for {', '.join(awaited)}" if awaited else "it does not wait for a signal now"
        raise Conflict(f"name: say which signal this is; {which}")
    return awaited[0]


def _checkpoint(row: Record) -> Checkpoint:
    _, now, name, kind, function, is_done, result, error, due_at, child_id = row
    return Checkpoint(
        name,
        kind,
        function,
        is_done,
        result,
        None if error is None else decode_error(error),
        due_at,
        None if due_at is None or is_done else (due_at - now).total_seconds(),
        child_id,
    )
