"""The attempts that a worker runs right now: started from claims, timed, and turned into outcomes.

One asyncio task an attempt, but for async functions that never wait: see `inline_calls.py`. Timers are the loop's own, one
handle an attempt, so that nothing is done per run until a time limit is really hit. An attempt is stopped for one of
three reasons, its time limit, a cancel or the worker's end, and which one it was decides the outcome.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from foliot.clock import Clock, SystemClock
from foliot.model.namespace import bare
from foliot.model.outcome import Attempted, Ending, Outcome, decide, error_of
from foliot.model.payloads import REFERENCE
from foliot.model.run import Cancel, Claim, RunOptions
from foliot.model.states import RunState
from foliot.sdk.context import Context
from foliot.service import own_task
from foliot.worker.executors.base import Executor
from foliot.worker.executors.output import CappedOutput
from foliot.worker.executors.task_errors import (
    CANCELLED_ITSELF,
    classify_error_off_loop,
    classify_error_without_user_code,
)
from foliot.worker.holdings import Holdings
from foliot.worker.inline_calls import InlineCalls, PendingCall, decode_payload
from foliot.worker.live_output import LiveOutput
from foliot.worker.upstream_results import AttemptRefused

decode_options = msgspec.json.Decoder(RunOptions).decode
# Tasks may write from several threads. One lock for all: it is held for a moment only.
writing = threading.Lock()
LEFT_RUNNING = (
    "; it does not stop: a plain function can't be ended, and goes on in a slot of its worker until it returns"
)
GOES_ON = "; it has not stopped since, and goes on in a slot of its worker until it ends"
REFUSAL_SECONDS = 5.0
"""What an async function that was cancelled gets to end in. One that goes on keeps its slot; its attempt ends without
it."""
CLEARING_SECONDS = 20.0
"""The same for executors of our own, which may have processes to end and to wait for."""
DEALT_WITH = (Ending.COMMITTED, Ending.EXPANDED)
NO_LONGER_OURS = Cancel("lost", "the run is no longer this worker's")


@dataclass(frozen=True, slots=True)
class KnownTask:
    """A task this worker can execute, with options that leave nothing open but the back-off."""

    executor: Executor
    options: RunOptions
    asks_for_context: bool = True
    """Otherwise it can't see what came before it, and that is read only if its payload points at it."""
    may_never_wait: bool = False
    """An async function that gets its payload and nothing else."""
    clearing_seconds: float = CLEARING_SECONDS
    """How long it may take to stop."""


class RunningAttempt:
    """One attempt under way."""

    __slots__ = (
        "cancel",
        "claim",
        "context",
        "live",
        "options",
        "output",
        "output_max_bytes",
        "started_at",
        "stopped_by",
        "task",
        "timer",
    )

    def __init__(self, claim: Claim, options: RunOptions, output_max_bytes: int) -> None:
        self.claim = claim
        self.options = options
        self.stopped_by: Ending | None = None
        self.cancel: Cancel | None = None
        self.output: CappedOutput | None = None
        self.live: LiveOutput | None = None
        self.output_max_bytes = output_max_bytes
        self.context = Context(
            run_id=claim.run_id, token=claim.token, attempt=claim.attempt, task=bare(claim.task), on_output=self.write
        )
        self.task: asyncio.Task[None]
        self.timer: asyncio.TimerHandle
        self.started_at: float

    def stopped(self) -> Attempted:
        why = self.stopped_by
        if why is Ending.TIMED_OUT:
            return Attempted(why, error=error_of("Timeout", f"ran longer than its {self.options.timeout_seconds:g} s"))
        if why is Ending.CANCELLED:
            cancel = self.cancel or NO_LONGER_OURS
            return Attempted(why, reason=cancel.reason, error=error_of("Cancelled", cancel.message))
        if why is Ending.RELEASED:
            return Attempted(why)
        return CANCELLED_ITSELF

    def write(self, chunk: bytes) -> None:
        with writing:
            if self.output is None:
                self.output = CappedOutput(self.output_max_bytes)
            if self.live is None:
                self.live = LiveOutput()
            self.output.write(chunk)
            self.live.write(chunk)


class Attempts:
    def __init__(
        self,
        *,
        tasks: Mapping[str, KnownTask],
        slots: Mapping[str, int],
        output_max_bytes: int,
        holdings: Holdings,
        on_outcome: Callable[[Outcome, Claim], None],
        on_committed: Callable[[Claim, Ending], None] = lambda _claim, _ending: None,
        on_lasted: Callable[[float], None] = lambda _: None,
        provide: Callable[[Context, RunOptions, dict[str, Any]], Awaitable[dict[str, Any]]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._inline_calls = InlineCalls(
            clock=self._clock, on_waiting=self._inline_call_waits, on_ended=self._inline_call_ended
        )
        self._tasks = tasks
        self._slots = dict(slots)
        self._free = dict(slots)
        self._output_max_bytes = output_max_bytes
        self._holdings = holdings
        self._on_outcome = on_outcome
        self._on_committed = on_committed
        self._provide = provide
        self.left_running = 0
        """Functions that go on in their slots although their attempts have ended."""
        self._on_lasted = on_lasted
        # By token too: a run that was lost here may be claimed here anew before this worker has noticed that it lost
        # it.
        self._running: dict[tuple[UUID, int], RunningAttempt] = {}
        self.on_busy: Callable[[], None] = lambda: None
        """Called when the first attempt of an idle worker starts to run."""
        self._given_up: dict[tuple[UUID, int], RunningAttempt] = {}
        """Async functions that go on although their attempts have ended."""
        self._number = 0
        """Of attempts that have been started and not ended: those that run, and those in the inline_calls."""
        self._all_ended = asyncio.Event()
        self._all_ended.set()

    @property
    def under_way(self) -> dict[tuple[UUID, int], RunningAttempt]:
        return dict(self._running)

    def free_slots(self) -> dict[str, int]:
        """Only the queues that have some."""
        return {queue: free for queue, free in self._free.items() if free > 0}

    def start_all(self, claims: Sequence[Claim]) -> None:
        self._holdings.take(claims)
        calls: list[PendingCall] = []
        for claim in claims:
            known = self._tasks[claim.task]
            executor, options = known.executor, known.options
            if claim.options:
                try:
                    options = decode_options(claim.options).or_else(known.options)
                except msgspec.DecodeError as error:
                    # Written past the API, by hand. It fails; the worker and the other attempts go on.
                    executor = refusing(error)
            if claim.is_disabled:
                executor = task_disabled
            self._number += 1
            self._free[claim.queue] -= 1
            if known.may_never_wait and not claim.has_upstream and not claim.is_disabled:
                calls.append((claim, options, executor))
            else:
                running = self._register(claim, options)
                running.task = own_task(self._attempt(running, executor))
        if self._number:
            self._all_ended.clear()
        self._inline_calls.add(calls)

    def _register(self, claim: Claim, options: RunOptions) -> RunningAttempt:
        running = RunningAttempt(claim, options, self._output_max_bytes)
        running.started_at = self._clock.monotonic()
        running.timer = asyncio.get_running_loop().call_later(
            options.timeout_seconds or 0, self._stop, running, Ending.TIMED_OUT
        )
        if not self._running:
            self.on_busy()
        self._running[claim.run_id, claim.token] = running
        return running

    def _inline_call_waits(self, claim: Claim, options: RunOptions, task: asyncio.Task[None]) -> RunningAttempt:
        """One of the lane's has to wait: from here on it can be stopped."""
        running = self._register(claim, options)
        running.task = task
        return running

    def release_all(self) -> None:
        """Stops everything; what was under way is given back unconsumed."""
        for claim, _, _ in self._inline_calls.withdraw_all():
            self._hand_on(claim, Outcome(claim.run_id, claim.token, RunState.READY))
        for running in list(self._running.values()):
            self._stop(running, Ending.RELEASED)

    def end(self, run_id: UUID, token: int, cancel: Cancel | None) -> None:
        """The run was asked to end; or, without a word about it, it is no longer ours, and whatever comes of it will be
        refused."""
        running = self._running.get((run_id, token))
        if running is not None and running.stopped_by is None:
            running.cancel = cancel
            self._stop(running, Ending.CANCELLED)
        elif running is None and (call := self._inline_calls.withdraw(run_id, token)) is not None:
            cancel = cancel or NO_LONGER_OURS
            attempted = Attempted(Ending.CANCELLED, reason=cancel.reason, error=error_of("Cancelled", cancel.message))
            self._conclude(call[0], call[1], attempted)

    async def ended(self) -> None:
        """Returns when nothing is under way any more."""
        await self._all_ended.wait()

    def _free_later(self, loop: asyncio.AbstractEventLoop, queue: str, _: object) -> None:
        """Called by the thread that has come to its end."""
        with suppress(RuntimeError):
            # The loop is closed: the worker has gone.
            loop.call_soon_threadsafe(self._give_back, queue)

    def _give_back(self, queue: str) -> None:
        self.left_running -= 1
        self._free[queue] += 1

    def _is_told(self, running: RunningAttempt) -> bool:
        """Whether the attempt may use what came before it; a signal may also say that it must not begin."""
        claim = running.claim
        is_asked_for = self._tasks[claim.task].asks_for_context or running.options.signal is not None
        return is_asked_for or (claim.payload is not None and REFERENCE in claim.payload)

    def _stop(self, running: RunningAttempt, why: Ending) -> None:
        if running.stopped_by is None:
            running.stopped_by = why
            running.context.ask_to_stop()
            running.task.cancel()
            running.timer.cancel()
            seconds = self._tasks[running.claim.task].clearing_seconds
            running.timer = asyncio.get_running_loop().call_later(seconds, self._give_up_on, running)

    def _give_up_on(self, running: RunningAttempt) -> None:
        """It was cancelled and goes on. Nothing can end it but the end of this process."""
        claim = running.claim
        self._given_up[claim.run_id, claim.token] = running
        self.left_running += 1
        self._free[claim.queue] -= 1
        self._end(running, and_goes_on(running.stopped(), GOES_ON))

    async def _execute(self, running: RunningAttempt, executor: Executor) -> Attempted:
        claim = running.claim
        try:
            payload = decode_payload(claim.payload) if claim.payload else {}
            if claim.has_upstream and self._provide is not None and self._is_told(running):
                payload = await self._provide(running.context, running.options, payload)
            return await executor(payload, running.context)
        except asyncio.CancelledError:
            return running.stopped()
        except AttemptRefused as refusal:
            return refusal.attempted
        except BaseException as error:
            # Whatever it was, it ends this attempt; the worker and the other attempts go on.
            return await self._told(running, error)

    async def _told(self, running: RunningAttempt, error: BaseException) -> Attempted:
        try:
            return await classify_error_off_loop(error)
        except asyncio.CancelledError:
            return running.stopped()
        except BaseException:
            return classify_error_without_user_code(error)

    async def _attempt(self, running: RunningAttempt, executor: Executor) -> None:
        self._end(running, await self._execute(running, executor))

    def _inline_call_ended(self, claim: Claim, options: RunOptions, attempted: Attempted, seconds: float) -> None:
        # Most often there is nothing at all that had to wait.
        key = claim.run_id, claim.token
        running = self._running.get(key) or self._given_up.get(key) if self._running or self._given_up else None
        if running is not None:
            self._end(running, attempted)
        else:
            self._on_lasted(seconds)
            self._conclude(claim, options, attempted)

    def _end(self, running: RunningAttempt, attempted: Attempted) -> None:
        claim = running.claim
        if self._running.pop((claim.run_id, claim.token), None) is None:
            # It has come to its end after all; its attempt has had its outcome for a while.
            del self._given_up[claim.run_id, claim.token]
            self._give_back(claim.queue)
            return
        running.timer.cancel()
        self._on_lasted(self._clock.monotonic() - running.started_at)
        left_running = running.context.left_running
        if running.stopped_by is Ending.CANCELLED and attempted.ending in (Ending.FAILED, Ending.SNOOZED):
            # What fails while it is cancelled was cancelled. What had finished first stands.
            attempted = running.stopped()
        # The context is in the hands of the task, and may say what it likes.
        if isinstance(left_running, Future):
            attempted = and_goes_on(attempted, LEFT_RUNNING)
            self.left_running += 1
            self._free[claim.queue] -= 1
            left_running.add_done_callback(partial(self._free_later, asyncio.get_running_loop(), claim.queue))
        if running.output is not None:
            attempted = replace(attempted, output=running.output.value())
        self._conclude(claim, running.options, attempted)

    def _conclude(self, claim: Claim, options: RunOptions, attempted: Attempted) -> None:
        if attempted.ending in DEALT_WITH:
            self._holdings.settle([(claim.run_id, claim.token)])
            self._count_out(claim)
            self._on_committed(claim, attempted.ending)
            return
        chance = random.random()  # noqa: S311
        lost = claim.lost
        try:
            outcome = decide(
                claim.run_id, claim.token, attempted, attempt=claim.attempt, lost=lost, options=options, chance=chance
            )
        except BaseException as error:
            # What can't be decided is a failure: an attempt that has ended must never stay open.
            failed = Attempted(Ending.FAILED, error=classify_error_without_user_code(error).error, is_retryable=False)
            outcome = decide(
                claim.run_id, claim.token, failed, attempt=claim.attempt, lost=lost, options=options, chance=chance
            )
        self._hand_on(claim, outcome)

    def _hand_on(self, claim: Claim, outcome: Outcome) -> None:
        self._count_out(claim)
        self._on_outcome(outcome, claim)

    def _count_out(self, claim: Claim) -> None:
        self._free[claim.queue] += 1
        self._number -= 1
        if not self._number:
            self._all_ended.set()


async def task_disabled(payload: dict[str, Any], context: Context) -> Attempted:
    """In place of what the task does."""
    why = f"the task {context.task!r} is disabled in its namespace, so that the attempt did not begin"
    return Attempted(Ending.FAILED, error=error_of("TaskDisabled", why), is_retryable=False)


def refusing(error: msgspec.DecodeError) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        return Attempted(Ending.FAILED, error=error_of("InvalidOptions", str(error)), is_retryable=False)

    return execute


def and_goes_on(attempted: Attempted, how: str) -> Attempted:
    """Says of an attempt that has ended that its function has not."""
    why = attempted.error
    return attempted if why is None else replace(attempted, error=error_of(why.kind, f"{why.message}{how}"))
