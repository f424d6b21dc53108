"""Calls async functions that need no context, one after the other in one asyncio task, until one of them waits.

Many functions return without ever waiting. Such a call needs no task of its own, no timer and no entry in the table of
running attempts, since nothing could observe or stop it meanwhile. The first call that waits keeps the shared task and
is registered like any other attempt; the remaining calls continue in a new task.

Calls must not notice that they share a task. When a call leaves a changed context variable or an unhandled cancellation
behind, the shared task ends and a new one takes over.
"""

from __future__ import annotations

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context as ContextVariables
from contextvars import copy_context
from typing import Any, Protocol, cast
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.model.outcome import Attempted
from foliot.model.run import Claim, RunOptions
from foliot.sdk.context import Context
from foliot.service import own_task
from foliot.worker.executors.base import Executor
from foliot.worker.executors.task_errors import CANCELLED_ITSELF, classify_error_without_user_code

# The longest that consecutive calls may keep the event loop to themselves.
TURN_SECONDS = 0.005
decode_payload = msgspec.json.Decoder(dict[str, Any]).decode
NO_CONTEXT = Context(run_id=UUID(int=0), token=0, attempt=0, task="", on_output=lambda _: None)
"""A placeholder for functions that take no context."""

PendingCall = tuple[Claim, RunOptions, Executor]


class WaitingAttempt(Protocol):
    """An attempt that had to wait, and can be stopped since."""

    def stopped(self) -> Attempted: ...


class InlineCalls:
    def __init__(
        self,
        *,
        clock: Clock,
        on_waiting: Callable[[Claim, RunOptions, asyncio.Task[None]], WaitingAttempt],
        on_ended: Callable[[Claim, RunOptions, Attempted, float], None],
    ) -> None:
        self._clock = clock
        self._on_waiting = on_waiting
        self._on_ended = on_ended
        self._pending: deque[PendingCall] = deque()
        # Not the context of the call that happens to run.
        self._context = copy_context()
        # The event loop keeps only weak references to tasks.
        self._tasks: set[asyncio.Task[None]] = set()

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
        task, untouched = cast("asyncio.Task[None]", asyncio.current_task()), copy_context()
        began_at = turn_began_at = self._clock.monotonic()
        while self._pending:
            claim, options, executor = self._pending.popleft()
            attempted = await self._call(claim, options, executor, task)
            now = self._clock.monotonic()
            self._on_ended(claim, options, attempted, now - began_at)
            if task.cancelling() or not is_same(copy_context(), untouched):
                return self._call_pending()
            if now - turn_began_at > TURN_SECONDS:
                await self._clock.sleep(0)
                now = turn_began_at = self._clock.monotonic()
            began_at = now
        return None

    @types.coroutine
    def _call(
        self, claim: Claim, options: RunOptions, executor: Executor, task: asyncio.Task[None]
    ) -> Generator[Any, None, Attempted]:
        """Drives the coroutine by hand, as a task would, to see whether it waits."""
        waiting: WaitingAttempt | None = None
        try:
            call: Coroutine[Any, None, Attempted] = executor(
                decode_payload(claim.payload) if claim.payload else {}, NO_CONTEXT
            )
            waits_for = call.send(None)
            waiting = self._on_waiting(claim, options, task)
            if self._pending:
                asyncio.get_running_loop().call_soon(self._call_pending)
            while True:
                try:
                    yield waits_for
                except BaseException as error:
                    waits_for = call.throw(error)
                else:
                    waits_for = call.send(None)
        except StopIteration as returned:
            attempted: Attempted = returned.value
        except asyncio.CancelledError:
            attempted = CANCELLED_ITSELF if waiting is None else waiting.stopped()
        except BaseException as error:
            # The error ends this attempt, not the pending calls.
            attempted = classify_error_without_user_code(error)
        return attempted


def is_same(context: ContextVariables, other: ContextVariables) -> bool:
    try:
        return context == other
    except BaseException:
        # Comparing the values runs user code.
        return False
