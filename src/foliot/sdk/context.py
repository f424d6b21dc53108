"""`ctx`: what a task may know of the attempt that runs it, and what it may say while it runs.

    @app.task
    def resize(path: str, ctx: foliot.Context) -> None:
        for number, tile in enumerate(tiles := cut(path)):
            if ctx.should_stop():
                return
            ctx.progress(number / len(tiles), f"tile {number}")
            ctx.logger.info("tile %d is done", number)

A function gets it when it has a parameter named `ctx`. A plain function, which nobody can interrupt, ends in time by
asking `should_stop()` now and then; an async one is cancelled where it waits.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

MESSAGE_MAX = 1000
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Progress:
    share: float
    """From 0 to 1."""
    message: str = ""


class Context:
    """Safe to use from any thread: each of its fields is written by one side only."""

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
        "task",
        "token",
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
        """Of a transactional task: the connection whose transaction finishes the run as well."""
        self.left_running: Future[Any] | None = None
        """Of a plain function that goes on after its attempt has ended."""
        self.progress_made: Progress | None = None
        self.upstream: Mapping[str, Any] = NOTHING
        """Of a step: the results of those that it came after, by their keys."""
        self.signal: Any = None
        """What the signal said that let it start."""
        self._is_stopping = False
        self._logger: logging.Logger | None = None
        self._on_output = on_output

    @property
    def logger(self) -> logging.Logger:
        """A logger whose lines are kept in the attempt's output, from INFO up; they go on to the handlers that you have
        set up, too."""
        if self._logger is None:
            # Not one of the registry's: those live for ever, and this one is the attempt's alone.
            self._logger = logging.Logger(f"foliot.task.{self.task}", logging.INFO)
            self._logger.parent = logging.getLogger("foliot.task")
            self._logger.addHandler(_IntoOutput(self.write))
        return self._logger

    def should_stop(self) -> bool:
        """Whether the attempt is asked to end: cancelled, out of time, or its worker stops."""
        return self._is_stopping

    def progress(self, share: float, message: str = "") -> None:
        """How far the work is, from 0 to 1, for whoever looks at the run."""
        number = float(share)
        if not math.isfinite(number):
            raise ValueError(f"ctx.progress: the share must be a number from 0 to 1, not {number!r}")
        self.progress_made = Progress(min(max(number, 0.0), 1.0), str(message)[:MESSAGE_MAX])

    def write(self, chunk: bytes) -> None:
        """Adds to the output that is kept with the attempt, and shown while it runs."""
        # A copy of plain bytes, made here: a class of the task's own must not run where others wait for its end.
        self._on_output(bytes(memoryview(chunk)))

    def ask_to_stop(self) -> None:
        self._is_stopping = True


class _LineFormatter(logging.Formatter):
    converter = staticmethod(time.gmtime)


class _IntoOutput(logging.Handler):
    """Writes each line into the output of an attempt."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write
        self.setFormatter(_LineFormatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
        except Exception:
            self.handleError(record)
