"""Calls async functions that ask for nothing, one after the other in one asyncio task, for as long as none of them has
to wait.

Many jobs are over before they would wait for anything. Such a one needs no task of its own, no timer and no entry among
what is under way: nobody could look at it or stop it in between. The first that does wait keeps the task it is in, is
then registered like any other attempt, and what is still pending goes on in a new task.

Jobs must not notice that they share a task. So a task ends, and another one takes over, after a job that has left
something in it: a value in a context variable, or a cancellation that nobody has dealt with.
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

# What the loop's other duties may have to wait for a row of calls.
TURN_SECONDS = 0.005
decode_payload = msgspec.json.Decoder(dict[str, Any]).decode
UNSEEN = Context(run_id=UUID(int=0), token=0, attempt=0, task="", on_output=lambda _: None)
"""For functions that do not ask for a context."""

PendingCall = tuple[Claim, RunOptions, Executor]


class WaitingAttempt(Protocol):
    """An attempt that has had to wait, and may be stopped since."""

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
        # Not that of whichever job has just been at work.
        self._context = copy_context()
        # The loop itself holds on to its tasks weakly.
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, calls: Iterable[PendingCall]) -> None:
        self._pending.extend(calls)
        self._call_pending()

    def withdraw(self, run_id: UUID, token: int) -> PendingCall | None:
        """Takes back what has not been called yet."""
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
        """Steps through the call by hand, as the task would, to see whether it waits."""
        waiting: WaitingAttempt | None = None
        try:
            call: Coroutine[Any, None, Attempted] = executor(
                decode_payload(claim.payload) if claim.payload else {}, UNSEEN
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
            # Whatever it was, it ends this attempt, and not what is still pending.
            attempted = classify_error_without_user_code(error)
        return attempted


def is_same(context: ContextVariables, other: ContextVariables) -> bool:
    try:
        return context == other
    except BaseException:
        # Values are compared by code of their own.
        return False
