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
        """In a transactional task: the connection whose transaction also finishes the run."""
        self.left_running: Future[Any] | None = None
        """A plain function that keeps running after its attempt has ended."""
        self.progress_made: Progress | None = None
        self.upstream: Mapping[str, Any] = NOTHING
        """In a workflow step: the results of the steps it depends on, by key."""
        self.signal: Any = None
        """The payload of the signal that started the run."""
        self._is_stopping = False
        self._logger: logging.Logger | None = None
        self._on_output = on_output

    @property
    def logger(self) -> logging.Logger:
        """A logger that writes to the attempt's output, from level INFO, and to the handlers that you configured."""
        if self._logger is None:
            # Not from `getLogger`: those loggers are never freed, and this one belongs to a single attempt.
            self._logger = logging.Logger(f"foliot.task.{self.task}", logging.INFO)
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


class _LineFormatter(logging.Formatter):
    converter = staticmethod(time.gmtime)


class _OutputHandler(logging.Handler):
    """Writes log lines to the output of an attempt."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        super().__init__()
        self._write = write
        self.setFormatter(_LineFormatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
        except Exception:
            self.handleError(record)
