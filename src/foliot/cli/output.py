"""Prints results as a table or as JSON, once or repeatedly.

On a terminal, `--watch` redraws in place. Elsewhere it prints one table, or one line of JSON, per refresh. After the
first answer, `--watch` keeps trying when the server can't be reached.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import click

from foliot.cli.columns import width
from foliot.cli.options import json_option, seconds
from foliot.clock import SystemClock, block
from foliot.sdk.client import TRANSIENT_ERRORS
from foliot.sdk.http_protocol import Answer, Document

INTERVAL_SECONDS = 2.0
SHORTEST_SECONDS = 0.1
TERMINATED = 143
# The alternate screen, so that the terminal's content comes back afterwards; and a hidden cursor.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

Fetch = Callable[[], Answer]
Render = Callable[[Document, datetime], str]


@dataclass(frozen=True, slots=True)
class Output:
    as_json: bool
    interval: float | None
    """Seconds between refreshes; None without `--watch`."""

    def pass_to_subcommand(self, context: click.Context) -> bool:
        """True if there is a subcommand. `foliot jobs --json show x` means the same as `foliot jobs show x --json`."""
        if context.invoked_subcommand is None:
            return False
        given = {"as_json": self.as_json, "is_watching": self.interval is not None, "interval": self.interval}
        context.default_map = {context.invoked_subcommand: {name: value for name, value in given.items() if value}}
        return True

    def show(self, fetch: Fetch, render: Render, *, nothing: str = "") -> None:
        """Prints the answer of `fetch`, formatted by `render`; or `nothing` on standard error if the text is empty."""
        if self.interval is None:
            self._print(fetch(), render, nothing)
        elif self.as_json or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            self._repeat(fetch, render, nothing, self.interval)
        else:
            self._draw(fetch, render, nothing, self.interval)

    def _print(self, answer: Answer, render: Render, nothing: str) -> None:
        if self.as_json:
            click.echo(answer.content)
            return
        text = render(answer.document, SystemClock().now())
        click.echo(text or nothing, err=not text)

    def _repeat(self, fetch: Fetch, render: Render, nothing: str, interval: float) -> None:
        self._print(fetch(), render, nothing)
        trouble = ""
        while True:
            block(interval)
            try:
                answer = fetch()
            except TRANSIENT_ERRORS as error:
                if error.detail != trouble:
                    click.echo(f"foliot: {error.detail}; retrying", err=True)
                trouble = error.detail
                continue
            if trouble:
                click.echo("foliot: connection restored", err=True)
            trouble = ""
            if not self.as_json:
                click.echo()
            self._print(answer, render, nothing)

    def _draw(self, fetch: Fetch, render: Render, nothing: str, interval: float) -> None:
        answer, trouble, text = fetch(), "", ""
        try:
            with alternate_screen():
                while True:
                    now = SystemClock().now()
                    text = text if trouble else render(answer.document, now) or nothing
                    click.echo(_coloured(frame(text, _title(interval, now, trouble))), nl=False, color=True)
                    block(interval)
                    try:
                        answer, trouble = fetch(), ""
                    except TRANSIENT_ERRORS as error:
                        trouble = error.detail
        finally:
            # Leave the last state on the screen, however the watch ends.
            click.echo(text)


def output_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds `--json`, `--watch` and `--interval`, and passes them to the command as `output`."""

    @json_option
    @click.option("--watch", "-w", "is_watching", is_flag=True, help="Refresh repeatedly until Ctrl-C.")
    @click.option(
        "--interval",
        type=seconds,
        metavar="DURATION",
        help=f"Time between refreshes; implies --watch.  [default: {INTERVAL_SECONDS:g}s]",
    )
    @functools.wraps(function)
    def wrapped(*arguments: Any, as_json: bool, is_watching: bool, interval: float | None, **options: Any) -> None:
        if interval is not None and interval < SHORTEST_SECONDS:
            raise click.BadParameter(f"must be at least {SHORTEST_SECONDS} seconds", param_hint="--interval")
        watched = (interval or INTERVAL_SECONDS) if is_watching or interval is not None else None
        function(*arguments, output=Output(as_json, watched), **options)

    return wrapped


def frame(text: str, title: str) -> str:
    """Fits the text to the terminal's current size, because a wrapped line would move all others.

    The last column stays free: with the cursor beyond it, clearing the rest of the line would erase its character.
    """
    columns, lines = shutil.get_terminal_size()
    rows = [title, "", *text.split("\n")]
    if len(rows) > lines:
        rows = [*rows[: max(lines - 1, 1)], f"... {len(rows) - lines + 1} more lines"][:lines]
    return (
        HOME
        + f"{REST_OF_LINE}\n".join(cropped(row, max(columns - 1, 1)) for row in rows)
        + REST_OF_LINE
        + REST_OF_SCREEN
    )


def cropped(line: str, columns: int) -> str:
    """Crops the line to the given width, but keeps all colour codes, so that no colour stays on."""
    kept, left = [], columns
    for part in re.split(f"({ESCAPE.pattern})", line):
        if ESCAPE.fullmatch(part):
            kept.append(part)
            continue
        for character in part:
            left -= width(character)
            if left < 0:
                break
            kept.append(character)
    return "".join(kept)


@contextmanager
def alternate_screen() -> Iterator[None]:
    """Switches to the alternate screen and always restores the terminal."""
    before = signal.signal(signal.SIGTERM, _terminated)
    click.echo(ENTER, nl=False, color=True)
    try:
        yield
    finally:
        click.echo(LEAVE, nl=False, color=True)
        signal.signal(signal.SIGTERM, before)


def _terminated(*_: object) -> NoReturn:
    raise SystemExit(TERMINATED)


def _coloured(text: str) -> str:
    """Removes colours only. click would remove cursor movements, too."""
    return ESCAPE.sub("", text) if click.get_current_context().color is False else text


def _title(interval: float, now: datetime, trouble: str) -> str:
    if trouble:
        return click.style(f"{trouble}; retrying. Showing the last known state.", fg="red")
    return click.style(f"Every {interval:g} s, last refresh at {now.astimezone():%H:%M:%S}. Ctrl-C to quit.", dim=True)
