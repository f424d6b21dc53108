"""How a command that shows something shows it: as a table or as JSON, once or again and again.

`--watch` draws in place on a terminal. Elsewhere each look is one table, or one line of JSON, after the other. A server
that is away for a while is waited for, once it has answered for the first time.
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

from foliot.cli.options import json_option, seconds
from foliot.cli.tables import width
from foliot.clock import SystemClock, block
from foliot.sdk.client import PASSING
from foliot.sdk.http_protocol import Answer, Document

INTERVAL_SECONDS = 2.0
SHORTEST_SECONDS = 0.1
TERMINATED = 143
# The other screen, so that what was there before is there again afterwards; and no cursor that jumps about.
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

Look = Callable[[], Answer]
Tell = Callable[[Document, datetime], str]


@dataclass(frozen=True, slots=True)
class Output:
    as_json: bool
    interval: float | None
    """Of looks, when it is watched."""

    def hand_on(self, context: click.Context) -> bool:
        """Whether a command below is called. `foliot jobs --json show x` means what `foliot jobs show x --json`
        does."""
        if context.invoked_subcommand is None:
            return False
        given = {"as_json": self.as_json, "is_watching": self.interval is not None, "interval": self.interval}
        context.default_map = {context.invoked_subcommand: {name: value for name, value in given.items() if value}}
        return True

    def show(self, look: Look, tell: Tell, *, nothing: str = "") -> None:
        """What `look` finds, as `tell` puts it; where that is empty, `nothing` is said, to people only."""
        if self.interval is None:
            self._print(look(), tell, nothing)
        elif self.as_json or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            self._repeat(look, tell, nothing, self.interval)
        else:
            self._draw(look, tell, nothing, self.interval)

    def _print(self, answer: Answer, tell: Tell, nothing: str) -> None:
        if self.as_json:
            click.echo(answer.content)
            return
        text = tell(answer.document, SystemClock().now())
        click.echo(text or nothing, err=not text)

    def _repeat(self, look: Look, tell: Tell, nothing: str, interval: float) -> None:
        self._print(look(), tell, nothing)
        trouble = ""
        while True:
            block(interval)
            try:
                answer = look()
            except PASSING as error:
                if error.detail != trouble:
                    click.echo(f"foliot: {error.detail}; trying again", err=True)
                trouble = error.detail
                continue
            if trouble:
                click.echo("foliot: it answers again", err=True)
            trouble = ""
            if not self.as_json:
                click.echo()
            self._print(answer, tell, nothing)

    def _draw(self, look: Look, tell: Tell, nothing: str, interval: float) -> None:
        answer, trouble, text = look(), "", ""
        try:
            with other_screen():
                while True:
                    now = SystemClock().now()
                    text = text if trouble else tell(answer.document, now) or nothing
                    click.echo(_coloured(frame(text, _title(interval, now, trouble))), nl=False, color=True)
                    block(interval)
                    try:
                        answer, trouble = look(), ""
                    except PASSING as error:
                        trouble = error.detail
        finally:
            # What was seen last stays, whatever ended the watch.
            click.echo(text)


def output_options(function: Callable[..., None]) -> Callable[..., None]:
    """`--json`, `--watch` and `--interval`, handed to the command as `output`."""

    @json_option
    @click.option("--watch", "-w", "is_watching", is_flag=True, help="Show it again and again, until Ctrl-C.")
    @click.option(
        "--interval",
        type=seconds,
        metavar="DURATION",
        help=f"How long to --watch between two looks.  [default: {INTERVAL_SECONDS:g}]",
    )
    @functools.wraps(function)
    def wrapped(*arguments: Any, as_json: bool, is_watching: bool, interval: float | None, **options: Any) -> None:
        if interval is not None and interval < SHORTEST_SECONDS:
            raise click.BadParameter(f"must be {SHORTEST_SECONDS} at least", param_hint="--interval")
        watched = (interval or INTERVAL_SECONDS) if is_watching or interval is not None else None
        function(*arguments, output=Output(as_json, watched), **options)

    return wrapped


def frame(text: str, title: str) -> str:
    """What fills a terminal of the size that it has now, and nothing beyond: a line that wrapped would move all others.

    The last column stays free: with the cursor beyond it, clearing the rest of the line would take its character away.
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
    """The line up to so many columns, with all its colours, so that none is left on."""
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
def other_screen() -> Iterator[None]:
    """Whatever ends it, the terminal is left as it was found."""
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
    """click would take out what moves the cursor together with the colours."""
    return ESCAPE.sub("", text) if click.get_current_context().color is False else text


def _title(interval: float, now: datetime, trouble: str) -> str:
    if trouble:
        return click.style(f"{trouble}; trying again. This is what was seen last.", fg="red")
    return click.style(f"Every {interval:g} s, last at {now.astimezone():%H:%M:%S}. Ctrl-C ends it.", dim=True)
