"""Shows progress on one line of the terminal, and clears it at the end. Prints nothing elsewhere or with --json."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Self, TypeVar

import click

from foliot.cli.columns import width
from foliot.cli.tables import clean
from foliot.clock import SystemClock

T = TypeVar("T")
REDRAW_SECONDS = 0.1
BAR_MAX = 30
# Shorter operations show no progress.
DELAY_SECONDS = 0.5
SPINNER = "|/-\\"


class Progress:
    """A progress bar. Use it as a context manager. `advance` is thread-safe."""

    def __init__(self, label: str, total: int, *, is_quiet: bool = False) -> None:
        self._label = clean(label)
        self._total = max(total, 1)
        self._done = 0
        self._is_shown = not is_quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = threading.Lock()
        self._clock = SystemClock()
        self._drawn_at = self._clock.monotonic() + DELAY_SECONDS - REDRAW_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True, color=True)

    def advance(self, number: int = 1) -> None:
        with self._lock:
            self._done += number
            if self._is_shown and self._clock.monotonic() - self._drawn_at >= REDRAW_SECONDS:
                self._drawn_at = self._clock.monotonic()
                click.echo(f"\r{bar(self._label, self._done, self._total)}\x1b[K", nl=False, err=True, color=True)


def tracked(items: Iterable[T], label: str, total: int, *, is_quiet: bool) -> Iterator[T]:
    """Yields the items and advances a progress bar after each."""
    with Progress(label, total, is_quiet=is_quiet) as progress:
        for item in items:
            yield item
            progress.advance()


@contextmanager
def spinner(label: str, *, is_quiet: bool) -> Iterator[None]:
    """Shows a spinner during a single request."""
    if is_quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    done = threading.Event()

    def spin() -> None:
        clock = SystemClock()
        began_at = clock.monotonic()
        if done.wait(DELAY_SECONDS):
            return
        turn = 0
        while not done.wait(REDRAW_SECONDS):
            turn += 1
            line = f"{SPINNER[turn % len(SPINNER)]} {clean(label)} {clock.monotonic() - began_at:.0f} s"
            click.echo(f"\r{line[: columns()]}\x1b[K", nl=False, err=True, color=True)
        click.echo("\r\x1b[K", nl=False, err=True, color=True)

    spinning = threading.Thread(target=spin, name="progress", daemon=True)
    spinning.start()
    try:
        yield
    finally:
        done.set()
        spinning.join()


def bar(label: str, done: int, total: int) -> str:
    """Fits the numbers, the label and the bar into a line, in this order of importance."""
    numbers = f"{min(done, total)}/{total}"
    left = columns() - len(numbers)
    if left <= width(label) + 1:
        return numbers[: columns()]
    room = min(left - width(label) - 5, BAR_MAX)
    filled = room * min(done, total) // total
    return f"{label} {numbers}" if room < 3 else f"{label} [{'#' * filled}{'-' * (room - filled)}] {numbers}"


def columns() -> int:
    # The last column stays free; otherwise the line would wrap.
    return max(shutil.get_terminal_size().columns - 1, 1)
