"""`ctx`: what a task may know of the attempt that runs it, and what it may say while it runs.

    @app.task
    def resize(path: str, ctx: foliot.Context) -> None:
        for number, tile in enumerate(tiles := cut(path)):
            if ctx.should_stop():
                return
            ctx.progress(number / len(tiles), f"tile {number}")

A function gets it when it has a parameter named `ctx`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Progress:
    share: float
    """From 0 to 1."""
    message: str = ""


class Context:
    """Safe to use from any thread: each of its fields is written by one side only."""

    __slots__ = ("_is_stopping", "_on_output", "attempt", "connection", "progress_made", "run_id", "task", "token")

    def __init__(self, *, run_id: UUID, token: int, attempt: int, task: str, on_output: Callable[[bytes], None]) -> None:
        self.run_id = run_id
        self.token = token
        self.attempt = attempt
        self.task = task
        self.connection: Any = None
        """Of a transactional task: the connection whose transaction finishes the run as well."""
        self.progress_made: Progress | None = None
        self._is_stopping = False
        self._on_output = on_output

    def should_stop(self) -> bool:
        """Whether the attempt is asked to end: cancelled, out of time, or its worker stops."""
        return self._is_stopping

    def progress(self, share: float, message: str = "") -> None:
        """How far the work is, from 0 to 1, for whoever looks at the run."""
        self.progress_made = Progress(min(max(float(share), 0.0), 1.0), message[:1000])

    def write(self, chunk: bytes) -> None:
        """Adds to the output that is kept with the attempt, and shown while it runs."""
        self._on_output(chunk)

    def ask_to_stop(self) -> None:
        self._is_stopping = True
