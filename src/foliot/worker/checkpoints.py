"""Keeps the checkpoints of durable functions in the store, fenced by run, token and worker.

Records of all attempts that are made at the same time share one statement, because a commit for each would dominate
their cost. A record that can't be written because the database is away is written again until the lease is lost, which
stops its attempt.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import Invalid
from foliot.events import EventBus
from foliot.model.checkpoint import Checkpoint, Kind
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace
from foliot.sdk.task_exceptions import StepError, Stopped
from foliot.service import Service
from foliot.store.checkpoints import NewCheckpoint
from foliot.store.database_errors import leaves_session_unusable
from foliot.worker.backend import Backend
from foliot.worker.identity import WorkerIdentity

BATCH = 500
IN_PLACE_SECONDS = 1.0
LINGER_SECONDS = 0.25
REFUSED_IN_CALL = ("unique", "idempotency_key", "dependencies", "signal")


class CheckpointWriter(Service):
    """Writes the checkpoints of all attempts of a worker, together."""

    def __init__(
        self,
        *,
        backend: Backend,
        config: Config,
        namespace: Namespace,
        identity: WorkerIdentity,
        clock: Clock,
        events: EventBus,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self.backend = backend
        self.config = config
        self.namespace = namespace
        self.identity = identity
        self._records: list[tuple[NewCheckpoint, asyncio.Future[tuple[bool, datetime | None]]]] = []

    def open(self, run_id: UUID, token: int, task: str) -> AttemptCheckpoints:
        return AttemptCheckpoints(self, run_id, token)

    async def record(self, record: NewCheckpoint) -> tuple[bool, datetime | None]:
        answer: asyncio.Future[tuple[bool, datetime | None]] = asyncio.get_running_loop().create_future()
        self._records.append((record, answer))
        self.wake()
        return await answer

    async def run_once(self) -> float | None:
        # Records of attempts that were stopped meanwhile are not written: somebody else may run them soon.
        self._records = [(record, answer) for record, answer in self._records if not answer.done()]
        if not self._records:
            return None
        batch = self._records[:BATCH]
        # If the write fails, the batch is written again.
        answers = await self.backend.store.checkpoints.record_checkpoints(
            self.identity.id, [record for record, _ in batch]
        )
        for (_, waiting), answer in zip(batch, answers, strict=True):
            if not waiting.done():
                waiting.set_result(answer)
        return 0


class AttemptCheckpoints:
    """The checkpoints of one attempt."""

    in_place_seconds = IN_PLACE_SECONDS
    linger_seconds = LINGER_SECONDS

    def __init__(self, writer: CheckpointWriter, run_id: UUID, token: int) -> None:
        self._writer = writer
        self._store = writer.backend.store
        self._run_id = run_id
        self._token = token
        self._worker_id = writer.identity.id
        # Each claim raises the token. A run that takes over the checkpoints of another begins with a higher one.
        self.starts_empty = token == 1
        self.result_max_bytes = writer.config.result_max_bytes

    def monotonic(self) -> float:
        return self._writer.clock.monotonic()

    async def pause(self, seconds: float) -> None:
        await self._writer.clock.sleep(seconds)

    async def in_thread(self, function: Callable[[], Any]) -> Any:
        """Calls the function in a thread of its own. A task in a thread waits for it, so both must not share a pool."""
        loop = asyncio.get_running_loop()
        returned: asyncio.Future[Any] = loop.create_future()
        variables = copy_context()

        def call() -> None:
            try:
                finish = partial(_resolve, returned, variables.run(function))
            except BaseException as error:
                finish = partial(_fail, returned, error)
            with suppress(RuntimeError):
                # The loop is closed: the worker has stopped.
                loop.call_soon_threadsafe(finish)

        threading.Thread(target=call, name="step", daemon=True).start()
        return await returned

    async def load(self) -> Sequence[Checkpoint]:
        found = await self._store.checkpoints.open_checkpoints(self._run_id, self._token, self._worker_id)
        if found is None:
            raise Stopped
        return found

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
        is_held, due_at = await self._writer.record(
            NewCheckpoint(self._run_id, self._token, name, kind, function, result, took_seconds, wait_seconds)
        )
        if not is_held:
            raise Stopped
        return due_at

    async def transact(self, name: str, function: str, work: Callable[[Any], Awaitable[str]]) -> str:
        limit = self._writer.config.timeout_seconds
        began_at, is_recorded, text = self.monotonic(), False, ""
        store = self._writer.backend.database
        if store is None:
            raise StepError(f"transaction {name!r}: this worker has no access to the database; run it on one that has")
        database = store.database
        try:
            async with database.transaction(statement_seconds=limit, idle_seconds=limit) as session:
                text = await self._worked(session, work)
                took = self.monotonic() - began_at
                record = NewCheckpoint(self._run_id, self._token, name, "transaction", function, text, took)
                write = partial(store.checkpoints.record_in, session, self._worker_id, record)
                # The record locks the run. A worker that freezes here must not hold that lock for long.
                is_recorded = await database.in_its_end(session, write)
                if not is_recorded:
                    raise Stopped
        except Exception:
            # The answer to the commit may be lost. The record says whether it was carried out.
            if not is_recorded or not any(found.name == name for found in await self.load()):
                raise
        return text

    async def await_signal(self, name: str, timeout_seconds: float | None) -> Checkpoint:
        found = await self._store.checkpoints.await_signal(
            self._run_id, self._token, self._worker_id, name, timeout_seconds
        )
        if found is None:
            raise Stopped
        return found

    async def call(self, name: str, job: Mapping[str, Any]) -> UUID:
        for field in REFUSED_IN_CALL:
            if field in job:
                raise StepError(f"call {name!r}: {field} can't be had in a call; submit the job instead")
        namespace = self._writer.namespace
        try:
            asked = msgspec.json.decode(msgspec.json.encode(job), type=JobRequest)
            child_id = await self._writer.backend.calls.call(
                namespace, self._worker_id, self._run_id, self._token, name, asked
            )
        except (Invalid, msgspec.ValidationError, TypeError) as error:
            raise StepError(f"call {name!r}: {error}") from error
        if child_id is None:
            raise Stopped
        return child_id

    async def note_unused(self, names: Sequence[str]) -> None:
        await self._store.checkpoints.note_unused(self._run_id, self._token, self._worker_id, names)

    async def _worked(self, session: Any, work: Callable[[Any], Awaitable[str]]) -> str:
        try:
            return await work(session)
        except BaseException as error:
            if leaves_session_unusable(error):
                session.terminate()
            raise


def _resolve(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        # A future takes no StopIteration, which a function may raise by mistake.
        future.set_exception(RuntimeError(str(error)) if isinstance(error, StopIteration) else error)
