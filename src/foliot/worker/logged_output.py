"""Sends what tasks log to the output of their runs, whatever logger they use and however logging is set up.

Records are taken where a logger hands them to its handlers, so the configuration of logging can neither hide nor repeat
them, and changes nothing here when a task changes it. The user's own handlers get them too.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from foliot.sdk.context import LineFormatter, TaskLogger

# Python logs the errors of forgotten asyncio tasks whenever it collects them, in the midst of any other run.
NOT_OF_A_RUN = frozenset({"asyncio"})
EMITS = logging.StreamHandler.emit.__code__
"""The code that writes to a stream on behalf of a log handler."""
PLAIN, NAMED = LineFormatter("%(message)s"), LineFormatter("%(name)s: %(message)s")


class Writer(Protocol):
    def write_output(self, chunk: bytes) -> bool:
        """Appends to the output of the attempt. False: the attempt has ended, and nothing was written."""
        ...


class CurrentWriter(Protocol):
    """A context variable, or whatever else knows who writes."""

    def get(self) -> Writer | None: ...


def line_of(record: logging.LogRecord) -> bytes:
    formatter = PLAIN if record.name == "root" else NAMED
    try:
        text = formatter.format(record)
    except Exception as error:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        text = f"{at} {record.levelname} {record.name}: {record.msg!r:.1000} can't be formatted: {type(error).__name__}"
    return f"{text}\n".encode("utf-8", "backslashreplace")


class LastResort(logging.StreamHandler):  # type: ignore[type-arg]
    """Handles the records of programs that have not set up logging, as Python would: warnings go to standard error. It
    also keeps `logging.info` from setting up a handler for all runs. Records of runs are shown only if that is
    wanted."""

    def __init__(self, writer: CurrentWriter, *, is_echoed: bool) -> None:
        super().__init__()
        self._writer = writer
        self._is_echoed = is_echoed
        self.setFormatter(NAMED)

    def emit(self, record: logging.LogRecord) -> None:
        is_of_run = self._writer.get() is not None and record.name not in NOT_OF_A_RUN
        if self._is_echoed if is_of_run else record.levelno >= logging.WARNING:
            self.stream = sys.stderr
            super().emit(record)


@contextmanager
def capture_records(writer: CurrentWriter, *, is_echoed: bool) -> Iterator[None]:
    """Until it is left. If nobody has set up logging, records from level INFO are logged, as `ctx.logger` does."""
    original = logging.Logger.callHandlers

    def call_handlers(self: logging.Logger, record: logging.LogRecord) -> None:
        to = writer.get()
        if to is not None and type(self) is not TaskLogger and record.name not in NOT_OF_A_RUN:
            is_written = to.write_output(line_of(record))
            if is_written and not is_echoed and not self.hasHandlers():
                # Python would print a warning that nobody handles.
                return
        original(self, record)

    root = logging.getLogger()
    # The handlers of pytest watch; they set up nothing.
    own = [handler for handler in root.handlers if not type(handler).__module__.startswith("_pytest.")]
    is_untouched = root.level == logging.WARNING and not own
    last_resort = LastResort(writer, is_echoed=is_echoed)
    if is_untouched:
        root.setLevel(logging.INFO)
        root.addHandler(last_resort)
    logging.Logger.callHandlers = call_handlers  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.Logger.callHandlers = original  # type: ignore[method-assign]
        root.removeHandler(last_resort)
        if is_untouched and root.level == logging.INFO:
            root.setLevel(logging.WARNING)
