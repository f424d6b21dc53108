"""Starts attempts from claims, enforces their timeouts, and turns them into outcomes.

Each attempt is an asyncio task, except async functions that never wait: see `inline_calls.py`. Each timeout is a timer
handle of the event loop, which costs nothing until it fires. An attempt is stopped because of its timeout, a cancel, or
the worker's shutdown; the reason decides the outcome.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from foliot.clock import Clock, SystemClock
from foliot.model.outcome import Attempted, Ending, Outcome, decide, error_of, succeeded
from foliot.model.payloads import REFERENCE
from foliot.model.run import NO_OPTIONS, Cancel, Claim, RunOptions
from foliot.sdk.context import Context
from foliot.service import own_task
from foliot.worker.executors.base import Executor
from foliot.worker.executors.task_errors import (
    classify_error_off_loop,
    classify_error_without_user_code,
)
from foliot.worker.holdings import Holdings
from foliot.worker.inline_calls import InlineCalls, PendingCall, decode_payload
from foliot.worker.known_tasks import KnownTask
from foliot.worker.placeholders import has_placeholders, rendered
from foliot.worker.printed_output import writer
from foliot.worker.running_attempt import RUN_LOST, RunningAttempt
from foliot.worker.upstream_results import AttemptRefused

if TYPE_CHECKING:
    from foliot.worker.attempt_traces import AttemptTraces

decode_options = msgspec.json.Decoder(RunOptions).decode
THREAD_STILL_RUNNING = (
    "; the function keeps running and holds a worker slot until it returns: a thread cannot be stopped"
)
CANCEL_IGNORED = "; the function ignores its cancellation, keeps running and holds a worker slot until it returns"
SUCCEEDED = Ending.SUCCEEDED
STORED_BY_EXECUTOR = (Ending.COMMITTED, Ending.EXPANDED)


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
        on_declined: Callable[[UUID], None] = lambda _: None,
        on_duration: Callable[[float], None] = lambda _: None,
        on_busy: Callable[[], None] = lambda: None,
        provide: Callable[[Context, RunOptions, dict[str, Any]], Awaitable[dict[str, Any]]] | None = None,
        traces: AttemptTraces | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`on_declined` is called with a run that is left to workers with another version of its task. `on_busy` is
        called when the first attempt of an idle worker has to wait."""
        self._clock = clock or SystemClock()
        self._inline_calls = InlineCalls(
            clock=self._clock,
            on_waiting=self._inline_call_waits,
            on_ended=self._inline_call_ended,
            output_max_bytes=output_max_bytes,
        )
        self._tasks = tasks
        self._slots = dict(slots)
        self._free = dict(slots)
        self._output_max_bytes = output_max_bytes
        self._holdings = holdings
        self._on_outcome = on_outcome
        self._on_committed = on_committed
        self._on_declined = on_declined
        self._provide = provide
        self._traces = traces
        self.left_running = 0
        """Functions that still run, and hold a slot, although their attempts have ended."""
        self._on_duration = on_duration
        # The key includes the token: this worker may claim a run again before it notices that it had lost it.
        self._running: dict[tuple[UUID, int], RunningAttempt] = {}
        self._on_busy = on_busy
        self._given_up: dict[tuple[UUID, int], RunningAttempt] = {}
        """Async functions that still run although their attempts have ended."""
        self._number = 0
        """The number of attempts that have started and not ended, inline calls included."""
        self._all_ended = asyncio.Event()
        self._all_ended.set()
        self._is_broken = False

    @property
    def is_broken(self) -> bool:
        """Whether an attempt was lost inside this process, because a job broke the code that concludes it. It would
        hold its run for ever."""
        return self._is_broken or self._inline_calls.is_broken or self._has_orphans()

    def _has_orphans(self) -> bool:
        return any(running.task.done() for running in list(self._running.values()))

    @property
    def under_way(self) -> dict[tuple[UUID, int], RunningAttempt]:
        return dict(self._running)

    def free_slots(self) -> dict[str, int]:
        """The number of free slots of each queue that has any."""
        return {queue: free for queue, free in self._free.items() if free > 0}

    def start_all(self, claims: Sequence[Claim]) -> None:
        self._holdings.take(claims)
        try:
            self._start_all(claims)
        except BaseException:
            self._is_broken = True
            raise

    def _start_all(self, claims: Sequence[Claim]) -> None:
        calls: list[PendingCall] = []
        for claim in claims:
            known = self._tasks[claim.task]
            executor, options, may_be_inline = known.executor, known.options, known.may_never_wait
            if claim.options:
                try:
                    options = decode_options(claim.options).or_else(known.options)
                    may_be_inline = may_be_inline and not options.templates
                except msgspec.DecodeError as error:
                    # Somebody wrote these options past the API. Only this attempt fails.
                    executor = refusing(error)
            if claim.flags:
                may_be_inline = may_be_inline and not (claim.has_upstream or claim.is_disabled)
                executor = task_disabled if claim.is_disabled else executor
            if self._traces is not None:
                executor = self._traces.around(executor, claim, options)
            self._number += 1
            self._free[claim.queue] -= 1
            if may_be_inline:
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
            self._on_busy()
        self._running[claim.run_id, claim.token] = running
        return running

    def _inline_call_waits(self, claim: Claim, options: RunOptions, task: asyncio.Task[None]) -> RunningAttempt:
        """An inline call has to wait. From here on it can be stopped."""
        running = self._register(claim, options)
        running.task = task
        return running

    def release_all(self) -> None:
        """Stops every attempt and gives the runs back without using up an attempt."""
        for claim, _, _ in self._inline_calls.withdraw_all():
            # It has not begun, so its guarantee does not forbid another start.
            self._conclude(claim, NO_OPTIONS, Attempted(Ending.RELEASED))
        for running in list(self._running.values()):
            self._stop(running, Ending.RELEASED)

    def end(self, run_id: UUID, token: int, cancel: Cancel | None) -> None:
        """Stops an attempt. Without a `cancel`, the run no longer belongs to this worker, and its outcome would be
        refused."""
        running = self._running.get((run_id, token))
        if running is not None and running.stopped_by is None:
            running.cancel = cancel
            self._stop(running, Ending.CANCELLED)
        elif running is None and (call := self._inline_calls.withdraw(run_id, token)) is not None:
            cancel = cancel or RUN_LOST
            attempted = Attempted(Ending.CANCELLED, reason=cancel.reason, error=error_of("Cancelled", cancel.message))
            self._conclude(call[0], call[1], attempted)

    async def ended(self) -> None:
        """Returns when no attempt is running."""
        await self._all_ended.wait()

    def _free_slot(self, queue: str, _: object = None) -> None:
        self.left_running -= 1
        self._free[queue] += 1

    def _needs_upstream(self, running: RunningAttempt) -> bool:
        """Whether the attempt may use upstream results. A signal may also forbid the attempt to start."""
        claim = running.claim
        may_be_used = self._tasks[claim.task].asks_for_context or running.options.signal is not None
        if may_be_used or (claim.payload is not None and REFERENCE in claim.payload):
            return True
        return has_placeholders(claim, running.options)

    def _stop(self, running: RunningAttempt, why: Ending) -> None:
        if running.stopped_by is None:
            running.stopped_by = why
            running.context.ask_to_stop()
            running.task.cancel()
            running.timer.cancel()
            if inspect.getcoroutinestate(running.task.get_coro()) == inspect.CORO_CREATED:  # type: ignore[arg-type]
                # A task that is cancelled before its first step ends without taking it.
                self._end(running, running.stopped())
                return
            seconds = self._tasks[running.claim.task].stop_seconds
            running.timer = asyncio.get_running_loop().call_later(seconds, self._give_up_on, running)

    def _give_up_on(self, running: RunningAttempt) -> None:
        """Ends the attempt of a function that ignored its cancellation. Only the end of this process stops the
        function."""
        claim = running.claim
        self._given_up[claim.run_id, claim.token] = running
        self.left_running += 1
        self._free[claim.queue] -= 1
        self._end(running, with_note(running.stopped(), CANCEL_IGNORED))

    async def _execute(self, running: RunningAttempt, executor: Executor) -> Attempted:
        claim = running.claim
        try:
            if self._tasks[claim.task].may_print:
                writer.set(running)
            raw = payload = decode_payload(claim.payload) if claim.payload else {}
            if claim.has_upstream and self._provide is not None and self._needs_upstream(running):
                payload = await self._provide(running.context, running.options, payload)
            if has_placeholders(claim, running.options):
                payload = rendered(claim, running.options, running.context, raw, payload)
            return await executor(payload, running.context)
        except asyncio.CancelledError:
            return running.stopped()
        except AttemptRefused as refusal:
            return refusal.attempted
        except BaseException as error:
            # No error of a task may reach the worker or the other attempts.
            return await self._classify(running, error)

    async def _classify(self, running: RunningAttempt, error: BaseException) -> Attempted:
        try:
            return await classify_error_off_loop(error)
        except asyncio.CancelledError:
            return running.stopped()
        except BaseException:
            return classify_error_without_user_code(error)

    async def _attempt(self, running: RunningAttempt, executor: Executor) -> None:
        try:
            self._end(running, await self._execute(running, executor))
        except BaseException:
            self._is_broken = True
            raise

    def _inline_call_ended(self, claim: Claim, options: RunOptions, attempted: Attempted, seconds: float) -> None:
        if self._running or self._given_up:
            key = claim.run_id, claim.token
            if (running := self._running.get(key) or self._given_up.get(key)) is not None:
                self._end(running, attempted)
                return
        self._on_duration(seconds)
        self._conclude(claim, options, attempted)

    def _end(self, running: RunningAttempt, attempted: Attempted) -> None:
        claim = running.claim
        if self._running.pop((claim.run_id, claim.token), None) is None:
            # The function has returned at last. Its attempt ended earlier.
            del self._given_up[claim.run_id, claim.token]
            self._free_slot(claim.queue)
            return
        running.has_ended = True
        running.timer.cancel()
        self._on_duration(self._clock.monotonic() - running.started_at)
        left_running = running.context.left_running
        if running.stopped_by is Ending.CANCELLED and attempted.ending in (
            Ending.FAILED,
            Ending.SKIPPED,
            Ending.SNOOZED,
            Ending.SUSPENDED,
        ):
            # A failure during the cancellation counts as cancelled. A success stands.
            attempted = running.stopped()
        # The task can write to its context, so check the type.
        if isinstance(left_running, asyncio.Future):
            attempted = with_note(attempted, THREAD_STILL_RUNNING)
            self.left_running += 1
            self._free[claim.queue] -= 1
            left_running.add_done_callback(partial(self._free_slot, claim.queue))
        if running.output is not None:
            attempted = replace(attempted, output=running.output.value())
        self._conclude(claim, running.options, attempted)

    def _conclude(self, claim: Claim, options: RunOptions, attempted: Attempted) -> None:
        self._free[claim.queue] += 1
        self._number -= 1
        if not self._number:
            self._all_ended.set()
        if attempted.ending is SUCCEEDED:
            # Most attempts end so, and nothing is left to decide.
            self._on_outcome(succeeded(claim.run_id, claim.token, attempted), claim)
        elif attempted.ending in STORED_BY_EXECUTOR:
            self._holdings.settle([(claim.run_id, claim.token)])
            self._on_committed(claim, attempted.ending)
        else:
            if attempted.is_misfit and attempted.ending is Ending.SNOOZED:
                self._on_declined(claim.run_id)
            self._on_outcome(decided(claim, options, attempted), claim)


def decided(claim: Claim, options: RunOptions, attempted: Attempted) -> Outcome:
    ended = partial(
        decide,
        claim.run_id,
        claim.token,
        attempt=claim.attempt,
        lost=claim.lost,
        options=options,
        chance=random(),  # noqa: S311
    )
    try:
        return ended(attempted)
    except BaseException as error:
        # An attempt that has ended must get an outcome, so this is a failure.
        why = classify_error_without_user_code(error).error
        return ended(Attempted(Ending.FAILED, error=why, is_retryable=False))


async def task_disabled(payload: dict[str, Any], context: Context) -> Attempted:
    """Replaces the executor of a disabled task."""
    why = f"the task {context.task!r} is disabled in its namespace: the attempt did not start"
    return Attempted(Ending.FAILED, error=error_of("TaskDisabled", why), is_retryable=False)


def refusing(error: msgspec.DecodeError) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        return Attempted(Ending.FAILED, error=error_of("InvalidOptions", str(error)), is_retryable=False)

    return execute


def with_note(attempted: Attempted, how: str) -> Attempted:
    """Adds a note to the error of an attempt whose function still runs."""
    why = attempted.error
    return attempted if why is None else replace(attempted, error=error_of(why.kind, f"{why.message}{how}"))
