"""The checkpoints of a bench's jobs, in memory. Time is that of the bench."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from foliot.config import Config
from foliot.model.checkpoint import Checkpoint, CheckpointError, Kind
from foliot.model.states import RunState
from foliot.sdk.task_exceptions import StepError

if TYPE_CHECKING:
    from foliot.testing.bench import Bench, Job


@dataclass(slots=True)
class Durability:
    """The records of a job, and the signals that it was sent."""

    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    signals: dict[str, Checkpoint] = field(default_factory=dict)
    """How each wait for them ends."""
    awaited: set[str] = field(default_factory=set)
    """The checkpoints that the suspended job waits for."""
    caller: Job | None = None


def signal_checkpoint(name: str, payload: Any, *, approved: bool, message: str) -> Checkpoint:
    error = None if approved else CheckpointError("Rejected", message or "no reason given")
    return Checkpoint(name, "signal", result=msgspec.json.encode(payload).decode(), error=error)


class BenchCheckpoints:
    """The checkpoints of one attempt."""

    starts_empty = False
    in_place_seconds = 0.0
    linger_seconds = 0.01
    result_max_bytes = Config().result_max_bytes

    def __init__(self, bench: Bench, job: Job) -> None:
        self._bench = bench
        self._job = job
        self._records = job.durability.checkpoints

    def monotonic(self) -> float:
        return self._bench.now.timestamp()

    async def pause(self, seconds: float) -> None:
        """Time stands still during an attempt."""
        await asyncio.sleep(0.001)  # noqa: TID251 - so that other tasks of the function run

    async def in_thread(self, function: Callable[[], Any]) -> Any:
        return function()

    async def load(self) -> Sequence[Checkpoint]:
        for name, record in self._records.items():
            if not record.is_done and (found := self.ended(record)) is not None:
                self._records[name] = found
        return [self._timed(record) for record in self._records.values()]

    async def record(
        self,
        name: str,
        kind: Kind,
        *,
        function: str | None = None,
        result: str | None = None,
        took_seconds: float = 0.0,
        wait_seconds: float | None = None,
    ) -> datetime | None:
        due_at = None if wait_seconds is None else self._bench.now + timedelta(seconds=wait_seconds)
        self._records[name] = Checkpoint(name, kind, function, due_at is None, result, due_at=due_at)
        return due_at

    async def transact(self, name: str, function: str, work: Callable[[Any], Awaitable[str]]) -> str:
        raise StepError(f"step {name!r}: ctx.transaction needs a database; call its function with a connection instead")

    async def await_signal(self, name: str, timeout_seconds: float | None) -> Checkpoint:
        due_at = None if timeout_seconds is None else self._bench.now + timedelta(seconds=timeout_seconds)
        record = Checkpoint(name, "signal", is_done=False, due_at=due_at)
        self._records[name] = found = self._job.durability.signals.get(name, record)
        return self._timed(found)

    async def call(self, name: str, job: Mapping[str, Any]) -> UUID:
        child, _ = self._bench.submit(job)
        child.durability.caller = self._job
        self._records[name] = Checkpoint(name, "call", str(job["task"]), is_done=False, child_id=child.run.id)
        return child.run.id

    async def note_unused(self, names: Sequence[str]) -> None:
        """The line in the job's output says it."""

    def ended(self, record: Checkpoint) -> Checkpoint | None:
        """How a wait has ended. None: it has not."""
        is_due = record.due_at is not None and record.due_at <= self._bench.now
        if record.kind == "signal":
            timed_out = replace(record, is_done=True, error=CheckpointError("SignalTimeout"))
            return self._job.durability.signals.get(record.name) or (timed_out if is_due else None)
        if record.kind == "sleep":
            return replace(record, is_done=True) if is_due else None
        child = self._bench.find(str(record.child_id))
        if child.is_open:
            return None
        last = child.outcome
        if child.state is RunState.SUCCEEDED and last is not None:
            return replace(record, is_done=True, result=last.result)
        said = msgspec.json.decode(last.error) if last is not None and last.error else {"kind": "Cancelled"}
        error = CheckpointError(said["kind"], said.get("message", ""), child.state)
        return replace(record, is_done=True, error=error)

    def _timed(self, record: Checkpoint) -> Checkpoint:
        if record.due_at is None:
            return record
        return replace(record, left_seconds=(record.due_at - self._bench.now).total_seconds())
