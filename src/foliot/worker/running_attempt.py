"""A running attempt: what it was claimed with, what stops it, and what it has written so far."""

from __future__ import annotations

import asyncio
import threading

from foliot.model.namespace import bare
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.run import Cancel, Claim, RunOptions
from foliot.sdk.context import Context
from foliot.worker.executors.output import CappedOutput
from foliot.worker.executors.task_errors import CANCELLED_ITSELF
from foliot.worker.live_output import LiveOutput

# Tasks may write from several threads. One lock serves all attempts, since it is held only briefly.
writing = threading.Lock()
RUN_LOST = Cancel("lost", "the run no longer belongs to this worker")


class RunningAttempt:
    """One running attempt."""

    __slots__ = (
        "cancel",
        "claim",
        "context",
        "has_ended",
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
        self.has_ended = False
        self.context = Context(
            run_id=claim.run_id, token=claim.token, attempt=claim.attempt, task=bare(claim.task), on_output=self.write
        )
        if options.tick is not None:
            self.context.stored_tick = options.tick
        self.context.traceparent = options.traceparent
        self.task: asyncio.Task[None]
        self.timer: asyncio.TimerHandle
        self.started_at: float

    def stopped(self) -> Attempted:
        why = self.stopped_by
        if why is Ending.TIMED_OUT:
            return Attempted(why, error=error_of("Timeout", f"ran longer than its {self.options.timeout_seconds:g} s"))
        if why is Ending.CANCELLED:
            cancel = self.cancel or RUN_LOST
            return Attempted(why, reason=cancel.reason, error=error_of("Cancelled", cancel.message))
        if why is Ending.RELEASED:
            return Attempted(why)
        return CANCELLED_ITSELF

    def write(self, chunk: bytes) -> None:
        self.write_output(chunk)

    def write_output(self, chunk: bytes) -> bool:
        """False if the attempt has ended; then nothing is written."""
        if self.has_ended:
            return False
        with writing:
            if self.output is None:
                self.output = CappedOutput(self.output_max_bytes)
            if self.live is None:
                self.live = LiveOutput()
            self.output.write(chunk)
            self.live.write(chunk)
        return True

    def take_live(self, part_max_bytes: int) -> list[tuple[int, bytes]]:
        """The output that is not stored yet, in parts with their positions."""
        with writing:
            return [] if self.live is None else self.live.take(part_max_bytes)
