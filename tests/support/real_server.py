"""A real server that tests start, and the harm that they do to it."""

from __future__ import annotations

import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import ClassVar

import psutil

from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS

SECRET = "hunter2"


class RealServer(ABC):
    """One server process on a port of its own, with the password `SECRET`."""

    kind: ClassVar[str]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return 0 if self._process is None else self._process.pid

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    def wrong_url(self) -> str:
        """The URL with a wrong password."""
        return self.url.replace(SECRET, "swordfish")

    def url_at(self, port: int) -> str:
        """The URL of the server behind a proxy."""
        return self.url.replace(f":{self.port}", f":{port}")

    @abstractmethod
    def command(self) -> list[str]: ...

    def environment(self) -> dict[str, str]:
        return {}

    @abstractmethod
    def answers(self) -> bool:
        """Whether the server is ready for clients. Blocks."""

    def start(self) -> None:
        self._process = Popen(
            self.command(), env=os.environ | self.environment(), cwd=self.directory, stdin=DEVNULL, stdout=DEVNULL,
            stderr=DEVNULL, start_new_session=True,
        )  # fmt: skip
        self.wait_until(self.answers)

    def stop(self) -> None:
        self.kill()

    def kill(self) -> None:
        if self._process is not None:
            for process in self._tree():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def wait_until(self, question: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not question():
            process = self._process
            assert process is None or process.poll() is None, f"{self.kind} ended: {process and process.returncode}"
            assert time.monotonic() < give_up_at, f"{self.kind} does not answer"
            time.sleep(0.05)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._tree():
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def _tree(self) -> list[psutil.Process]:
        assert self._process is not None
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        return []
