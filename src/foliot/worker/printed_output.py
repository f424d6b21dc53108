"""Sends what tasks print to the output of their runs.

`writer` is a context variable that holds the running attempt. Everything that a task starts within its context inherits
it: coroutines, asyncio tasks, `asyncio.to_thread`. While a worker runs, `sys.stdout` and `sys.stderr` are streams that
ask for it at every write, so a task that prints nothing pays nothing. Text printed outside of attempts, or after the
attempt has ended, goes to the worker's own streams.

A task that replaces `sys.stdout`, as `contextlib.redirect_stdout` does, replaces it for itself only: the module `sys`
gets a class whose `stdout` and `stderr` are properties. `print` without a file does not ask the property, so the stream
passes on what it gets.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Literal, TextIO

from foliot.worker.logged_output import EMITS, Writer, capture_records

StreamName = Literal["stdout", "stderr"]
Echo = Literal["auto", "always", "never"]
ECHO_MAX = 65_536
"""The most characters of one write that are repeated on the worker's terminal."""
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


writer: ContextVar[Writer | None] = ContextVar("foliot_writer", default=None)
_replaced: dict[StreamName, ContextVar[Any]] = {
    "stdout": ContextVar("foliot_stdout", default=None),
    "stderr": ContextVar("foliot_stderr", default=None),
}


class RunStream(io.TextIOBase):
    """Stands in for `sys.stdout` or `sys.stderr`."""

    def __init__(self, name: StreamName, original: TextIO, *, is_echoed: bool) -> None:
        super().__init__()
        self._name = name
        self._original = original
        self.is_echoed = is_echoed
        self.buffer = RunBuffer(self)

    def write(self, text: str) -> int:
        to = writer.get()
        replacement = _replaced[self._name].get()
        if replacement is not None:
            return self._write_to(replacement, text)
        if to is None:
            return self._original.write(text)
        # A log handler that the user has set up. The record itself is in the output already.
        is_logged = sys._getframe(1).f_code is EMITS  # noqa: SLF001
        is_written = not is_logged and to.write_output(text.encode("utf-8", "backslashreplace"))
        if not is_written or self.is_echoed:
            self._show(text)
        return len(text)

    def write_bytes(self, chunk: bytes) -> int:
        to = writer.get()
        if to is None:
            return getattr(self._original, "buffer", io.BytesIO()).write(chunk)
        if not to.write_output(chunk) or self.is_echoed:
            self._show(chunk.decode("utf-8", "replace"))
        return len(chunk)

    def writelines(self, lines: Iterable[str]) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._original.flush()

    def isatty(self) -> bool:
        return writer.get() is None and self._original.isatty()

    def fileno(self) -> int:
        return self._original.fileno()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Closes nothing: the stream belongs to all runs."""

    def detach(self) -> Any:
        raise io.UnsupportedOperation("the stream belongs to all runs")

    def reconfigure(self, **_: Any) -> None:
        """Changes nothing: the stream belongs to all runs."""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "backslashreplace"

    @property
    def name(self) -> str:
        return f"<{self._name}>"

    @property
    def original(self) -> TextIO:
        return self._original

    def _write_to(self, replacement: Any, text: str) -> int:
        """The replacement may write to this stream, as a tee does."""
        replaced = _replaced[self._name]
        before = replaced.set(None)
        try:
            written: int = replacement.write(text)
        finally:
            replaced.reset(before)
        return written

    def _show(self, text: str) -> None:
        """On the worker's terminal, without characters that would control it."""
        with contextlib.suppress(OSError, ValueError):
            self._original.write(CONTROL.sub(_escaped, text[:ECHO_MAX]).encode("utf-8", "backslashreplace").decode())


class RunBuffer(io.BufferedIOBase):
    """The bytes below a stream."""

    def __init__(self, stream: RunStream) -> None:
        super().__init__()
        self._stream = stream

    def write(self, chunk: Any) -> int:
        return self._stream.write_bytes(bytes(memoryview(chunk)))

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        """Closes nothing: the stream belongs to all runs."""


class SysModule(ModuleType):
    """The class of the module `sys` while a worker runs."""

    @property
    def stdout(self) -> Any:
        return _current("stdout")

    @stdout.setter
    def stdout(self, value: Any) -> None:
        _replace("stdout", value)

    @property
    def stderr(self) -> Any:
        return _current("stderr")

    @stderr.setter
    def stderr(self, value: Any) -> None:
        _replace("stderr", value)


def _current(name: StreamName) -> Any:
    replacement = _replaced[name].get()
    return vars(sys)[name] if replacement is None else replacement


def _replace(name: StreamName, value: Any) -> None:
    if writer.get() is None and threading.current_thread() is threading.main_thread():
        vars(sys)[name] = value
    else:
        _replaced[name].set(None if value is vars(sys)[name] else value)


class Capture:
    """Installs the streams and the capture of log records, for as long as somebody needs them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._stack = contextlib.ExitStack()

    @contextlib.contextmanager
    def __call__(self, echo: Echo) -> Iterator[None]:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._stack.enter_context(_installed(echo))
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._stack.close()


capturing = Capture()


@contextlib.contextmanager
def _installed(echo: Echo) -> Iterator[None]:
    # A process without a terminal may have neither.
    streams: dict[str, RunStream] = {name: _stream(name, echo) for name in _replaced if vars(sys)[name] is not None}
    kind = type(sys)
    sys.__class__ = SysModule
    vars(sys).update(streams)
    is_echoed = any(stream.is_echoed for stream in streams.values())
    try:
        with capture_records(writer, is_echoed=is_echoed):
            yield
    finally:
        sys.__class__ = kind
        for name, stream in streams.items():
            if vars(sys)[name] is stream:
                vars(sys)[name] = stream.original


def _stream(name: StreamName, echo: Echo) -> RunStream:
    original = vars(sys)[name]
    return RunStream(name, original, is_echoed=echo == "always" or (echo == "auto" and original.isatty()))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
