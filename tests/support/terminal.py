"""Runs `foliot` as a person at a terminal or a script does: output, errors and exit code."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from foliot.cli.main import main
from tests.support.waiting import PATIENCE_SECONDS


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


class Terminal:
    """Runs `foliot` as a process in its own directory, with only the settings that a test passes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}

    def foliot(self, *arguments: str, **settings: str) -> Ended:
        environment = self._environment | {f"FOLIOT_{name.upper()}": value for name, value in settings.items()}
        done = subprocess.run(
            [sys.executable, "-m", "foliot", *arguments],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def refusal(self, *arguments: str, code: int = 2, **settings: str) -> str:
        """The one-line error of a command that did nothing."""
        ended = self.foliot(*arguments, **settings)
        assert (ended.code, ended.out) == (code, "")
        assert ended.err.startswith("foliot: ")
        assert ended.err.count("\n") == 1
        return ended.err


class Shell:
    """Runs `foliot` inside the test process, which is faster, against the server at `url`."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = url
        self._monkeypatch = monkeypatch

    def foliot(self, *arguments: str, stdin: bytes = b"", url: str | None = None) -> Ended:
        streams = {
            name: io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for name in ("stdout", "stderr")
        }
        with self._monkeypatch.context() as patch:
            patch.setenv("FOLIOT_URL", self.url if url is None else url)
            patch.setattr(sys, "argv", ["foliot", *arguments])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = (stream.buffer.getvalue().decode() for stream in streams.values())
        assert "Traceback" not in err
        return Ended(int(ended.value.code or 0), out, err)

    def done(self, *arguments: str, stdin: bytes = b"") -> str:
        """The standard output of a command that succeeds."""
        ended = self.foliot(*arguments, stdin=stdin)
        assert ended.code == 0, ended.err
        return ended.out

    def json(self, *arguments: str) -> Any:
        """The JSON that a command prints."""
        return json.loads(self.done(*arguments, "--json"))

    def refusal(self, *arguments: str, code: int, stdin: bytes = b"", url: str | None = None) -> str:
        """The error of a command that did nothing."""
        ended = self.foliot(*arguments, stdin=stdin, url=url)
        assert (ended.code, ended.out) == (code, ""), ended.err
        return ended.err


class Screen:
    """Runs `foliot` as a process on a terminal of a given size, and collects its output in `shown`.

    Leaving the context manager kills the process.
    """

    def __init__(self, url: str, *arguments: str, columns: int = 80, lines: int = 24, **environment: str) -> None:
        self.shown = ""
        self._ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        unwanted = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
        kept = {
            name: value for name, value in os.environ.items() if name not in unwanted and not name.startswith("FOLIOT_")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "foliot", *arguments],
            env=kept | {"FOLIOT_URL": url, "TERM": "xterm-256color"} | environment, stdin=its, stdout=its, stderr=its,
        )  # fmt: skip
        os.close(its)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def until(self, text: str, *, seconds: float = PATIENCE_SECONDS) -> str:
        """Waits for a text, and returns the output since the previous call."""
        began = len(self.shown)
        give_up_at = time.monotonic() + seconds
        while text not in self.shown[began:]:
            if time.monotonic() > give_up_at or not self._read(give_up_at):
                raise AssertionError(f"no {text!r} on the screen:\n{self.shown!r}")
        return self.shown[began:]

    def end(self, *, seconds: float = PATIENCE_SECONDS) -> int:
        """Reads the remaining output, and returns the exit code."""
        give_up_at = time.monotonic() + seconds
        while self._read(give_up_at):
            pass
        return self.process.wait(timeout=seconds)

    def _read(self, give_up_at: float) -> bool:
        if not select.select([self._ours], [], [], max(give_up_at - time.monotonic(), 0))[0]:
            return False
        try:
            chunk = os.read(self._ours, 65_536)
        except OSError:
            # Linux reports an error, not an end of file, after the last writer has closed the terminal.
            return False
        self.shown += chunk.decode("utf-8", "replace")
        return bool(chunk)


def on_a_terminal(url: str, *arguments: str, typed: str = "", **environment: str) -> Ended:
    """A real process whose input and output are a terminal; `out` holds everything that it shows."""
    ours, its = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "foliot", *arguments],
        env=kept | {"FOLIOT_URL": url, "TERM": "xterm-256color"} | environment, stdin=its, stdout=its, stderr=its,
    )  # fmt: skip
    os.close(its)
    os.write(ours, typed.encode())
    shown = b""
    # On Linux, a read fails instead of returning an end of file when the last writer has gone.
    try:
        while chunk := os.read(ours, 65_536):
            shown += chunk
    except OSError:
        pass
    finally:
        os.close(ours)
    return Ended(process.wait(timeout=60), shown.decode(), "")
