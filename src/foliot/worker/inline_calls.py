"""Calls async functions that need no context, one after the other in one asyncio task, until one of them waits.

Many functions return without ever waiting. Such a call needs no task of its own, no timer and no entry in the table of
running attempts, since nothing could observe or stop it meanwhile. The first call that waits keeps the shared task and
is registered like any other attempt; the remaining calls continue in a new task.

Calls must not notice that they share a task. Each call has a context of its own, so no call sees the context variables
of another. When a call leaves an unhandled cancellation behind, the shared task ends and a new one takes over.
"""

from __future__ import annotations

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context as ContextVariables
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Protocol, cast
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.model.outcome import Attempted
from foliot.model.run import Claim, RunOptions
from foliot.sdk.context import Context
from foliot.service import own_task
from foliot.worker.executors.base import Executor
from foliot.worker.executors.output import CappedOutput
from foliot.worker.executors.task_errors import CANCELLED_ITSELF, classify_error_without_user_code
from foliot.worker.printed_output import writer

# The longest that consecutive calls may keep the event loop to themselves.
TURN_SECONDS = 0.005
decode_payload = msgspec.json.Decoder(dict[str, Any]).decode
NO_CONTEXT = Context(run_id=UUID(int=0), token=0, attempt=0, task="", on_output=lambda _: None)
"""A placeholder for functions that take no context."""

PendingCall = tuple[Claim, RunOptions, Executor]
Call = Coroutine[Any, None, Attempted]


class WaitingAttempt(Protocol):
    """An attempt that had to wait, and can be stopped since."""

    def stopped(self) -> Attempted: ...

    def write_output(self, chunk: bytes) -> bool: ...


class PrintingCall(msgspec.Struct, gc=False):
    """Keeps what a call prints until it ends, or waits and becomes an attempt like any other."""

    output_max_bytes: int
    attempt: WaitingAttempt | None = None
    output: CappedOutput | None = None
    has_ended: bool = False

    def write_output(self, chunk: bytes) -> bool:
        if self.attempt is not None:
            return self.attempt.write_output(chunk)
        if self.has_ended:
            return False
        if self.output is None:
            self.output = CappedOutput(self.output_max_bytes)
        self.output.write(chunk)
        return True

    def hand_over(self, attempt: WaitingAttempt) -> None:
        self.attempt = attempt
        if self.output is not None:
            attempt.write_output(self.output.value())
            self.output = None

    def end(self, attempted: Attempted) -> Attempted:
        # Breaks the circle of call, attempt and task, which the garbage collector does not see.
        self.attempt = None
        return attempted if self.output is None else replace(attempted, output=self.output.value())


class InlineCalls:
    def __init__(
        self,
        *,
        clock: Clock,
        on_waiting: Callable[[Claim, RunOptions, asyncio.Task[None]], WaitingAttempt],
        on_ended: Callable[[Claim, RunOptions, Attempted, float], None],
        output_max_bytes: int,
    ) -> None:
        self._clock = clock
        self._on_waiting = on_waiting
        self._on_ended = on_ended
        self._output_max_bytes = output_max_bytes
        self._pending: deque[PendingCall] = deque()
        # Not the context of the call that happens to run.
        self._context = copy_context()
        # The event loop keeps only weak references to tasks.
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_broken = False

    @property
    def is_broken(self) -> bool:
        """Whether calls wait for a task that has died."""
        return self._is_broken

    def add(self, calls: Iterable[PendingCall]) -> None:
        self._pending.extend(calls)
        self._call_pending()

    def withdraw(self, run_id: UUID, token: int) -> PendingCall | None:
        """Removes a call that has not started yet."""
        for call in self._pending:
            if call[0].run_id == run_id and call[0].token == token:
                self._pending.remove(call)
                return call
        return None

    def withdraw_all(self) -> list[PendingCall]:
        withdrawn = list(self._pending)
        self._pending.clear()
        return withdrawn

    def _call_pending(self) -> None:
        if self._pending:
            task = own_task(self._call_all(), context=self._context.copy())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _call_all(self) -> None:
        try:
            await self._call_each()
        except BaseException:
            self._is_broken = True
            raise

    async def _call_each(self) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        monotonic, new_context, set_writer = self._clock.monotonic, self._context.copy, writer.set
        began_at = turn_began_at = monotonic()
        while self._pending:
            claim, options, executor = self._pending.popleft()
            printing, context = PrintingCall(self._output_max_bytes), new_context()
            try:
                call = executor(decode_payload(claim.payload) if claim.payload else {}, NO_CONTEXT)
                context.run(set_writer, printing)
                waits_for = context.run(call.send, None)
            except StopIteration as returned:
                attempted = returned.value
            except asyncio.CancelledError:
                attempted = CANCELLED_ITSELF
            except BaseException as error:
                # The error ends this attempt, not the pending calls.
                attempted = classify_error_without_user_code(error)
            else:
                waiting = self._on_waiting(claim, options, task)
                printing.hand_over(waiting)
                if self._pending:
                    asyncio.get_running_loop().call_soon(self._call_pending)
                attempted = await finish(call, context, waits_for, waiting)
            now = monotonic()
            printing.has_ended = True
            if printing.output is not None or printing.attempt is not None:
                attempted = printing.end(attempted)
            self._on_ended(claim, options, attempted, now - began_at)
            if task.cancelling():
                return self._call_pending()
            if now - turn_began_at > TURN_SECONDS:
                await self._clock.sleep(0)
                now = turn_began_at = monotonic()
            began_at = now
        return None


@types.coroutine
def finish(
    call: Call, context: ContextVariables, waits_for: Any, waiting: WaitingAttempt
) -> Generator[Any, None, Attempted]:
    """Drives the coroutine by hand, as a task would, from its first wait to its end."""
    try:
        while True:
            try:
                yield waits_for
            except BaseException as error:
                waits_for = context.run(call.throw, error)
            else:
                waits_for = context.run(call.send, None)
    except StopIteration as returned:
        attempted: Attempted = returned.value
    except asyncio.CancelledError:
        attempted = waiting.stopped()
    except BaseException as error:
        attempted = classify_error_without_user_code(error)
    return attempted
