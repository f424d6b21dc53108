"""`ctx`: gives a task access to its running attempt.

    @app.task
    def resize(path: str, ctx: foliot.Context) -> None:
        for number, tile in enumerate(tiles := cut(path)):
            if ctx.should_stop():
                return
            ctx.progress(number / len(tiles), f"tile {number}")
            ctx.logger.info("tile %d is done", number)

A task that has a parameter named `ctx` receives the context. A plain function can't be interrupted, so it should check
`should_stop()` regularly. An async function is cancelled at its next `await`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from foliot.model.tick import StoredTick, Tick, tick_from
from foliot.sdk.durable_context import DurableContext

MESSAGE_MAX = 1000
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Progress:
    share: float
    """From 0 to 1."""
    message: str = ""


class Context(DurableContext):
    """The context of an attempt. Safe to use from any thread."""

    __slots__ = (
        "_is_stopping",
        "_logger",
        "_on_output",
        "attempt",
        "connection",
        "left_running",
        "progress_made",
        "run_id",
        "signal",
        "stored_tick",
        "task",
        "token",
        "traceparent",
        "upstream",
    )

    def __init__(
        self, *, run_id: UUID, token: int, attempt: int, task: str, on_output: Callable[[bytes], None]
    ) -> None:
        self.run_id = run_id
        self.token = token
        self.attempt = attempt
        self.task = task
        self.connection: Any = None
        """In a transactional task: the connection whose transaction also finishes the run."""
        self.left_running: asyncio.Future[Any] | None = None
        """A plain function that keeps running after its attempt has ended."""
        self.progress_made: Progress | None = None
        self.upstream: Mapping[str, Any] = NOTHING
        """In a workflow step: the results of the steps it depends on, by key."""
        self.signal: Any = None
        """The payload of the signal that started the run."""
        self.stored_tick: StoredTick | None = None
        """The tick as it is stored; tasks read `tick`."""
        self.traceparent: str | None = None
        """The trace of the attempt, for other systems: the value of the header `traceparent`. None: there is none."""
        self._is_stopping = False
        self._logger: logging.Logger | None = None
        self._on_output = on_output

    @property
    def tick(self) -> Tick | None:
        """The tick of the schedule that the run is for, in the time zone of the job. None for a one-off run.

        Steps of a workflow and items of a map have the tick of the workflow's run. Retries, reruns and replays keep the
        tick of the first run.
        """
        return None if self.stored_tick is None else tick_from(self.stored_tick)

    @property
    def scheduled_for(self) -> datetime | None:
        """The time of the tick, with its time zone. Of a run that was triggered by hand: when it was triggered."""
        tick = self.tick
        return None if tick is None else tick.at

    @property
    def previous_tick(self) -> datetime | None:
        """The tick before this one."""
        tick = self.tick
        return None if tick is None else tick.previous

    @property
    def next_tick(self) -> datetime | None:
        """The tick after this one."""
        tick = self.tick
        return None if tick is None else tick.next

    @property
    def is_backfill(self) -> bool:
        """Whether a backfill made the run, for a tick of the past."""
        return self.stored_tick is not None and self.stored_tick.origin == "backfill"

    @property
    def logger(self) -> logging.Logger:
        """A logger that writes to the attempt's output, from level INFO, and to the handlers that you configured."""
        if self._logger is None:
            # Not from `getLogger`: those loggers are never freed, and this one belongs to a single attempt.
            self._logger = TaskLogger(f"foliot.task.{self.task}", logging.INFO)
            self._logger.parent = logging.getLogger("foliot.task")
            self._logger.addHandler(_OutputHandler(self.write))
        return self._logger

    def should_stop(self) -> bool:
        """Returns True when the attempt should end: it was cancelled or timed out, or its worker is stopping."""
        return self._is_stopping

    def progress(self, share: float, message: str = "") -> None:
        """Reports the progress of the run, from 0 to 1, with an optional message."""
        number = float(share)
        if not math.isfinite(number):
            raise ValueError(f"ctx.progress: share must be a number from 0 to 1, not {number!r}")
        self.progress_made = Progress(min(max(number, 0.0), 1.0), str(message)[:MESSAGE_MAX])

    def write(self, chunk: bytes) -> None:
        """Appends to the attempt's output, which is stored and can be followed during the run."""
        # Copy to plain bytes here, so that no code of a custom class runs in the worker's shared loop.
        self._on_output(bytes(memoryview(chunk)))

    def ask_to_stop(self) -> None:
        self._is_stopping = True


class TaskLogger(logging.Logger):
    """The logger of one attempt."""


class LineFormatter(logging.Formatter):
    """A line with time and level."""

    converter = staticmethod(time.gmtime)

    def __init__(self, message: str) -> None:
        super().__init__(f"%(asctime)s %(levelname)s {message}", "%Y-%m-%dT%H:%M:%SZ")


class _OutputHandler(logging.Handler):
    """Writes log lines to the output of an attempt."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write
        self.setFormatter(LineFormatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
        except Exception:
            self.handleError(record)
