"""Real `foliot` processes, and waiting for the events that they log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.support.strangers import python_of_nobody
from tests.support.waiting import PATIENCE_SECONDS

# For one of several processes that start at once and import everything first.
START_SECONDS = 2 * PATIENCE_SECONDS
ROOT = Path(__file__).resolve().parents[2]


class FoliotProcess:
    """`foliot ...` with its log read as events. Use as an async context manager: it leaves no process behind."""

    def __init__(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: int | None = None,
        pass_fds: Sequence[int] = (),
        files_max: int | None = None,
    ) -> None:
        """`user`: who it runs as, where we are root. `files_max`: how many files it may have open."""
        self._arguments = arguments
        self._started_as: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
        self._python, path = (sys.executable, str(ROOT)) if user is None else python_of_nobody()
        self._pass_fds = tuple(pass_fds)
        self._files_max = files_max
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        self._environment = (
            kept
            | {"FOLIOT_LOG_FORMAT": "json", "FOLIOT_LOG_LEVEL": "debug", "PYTHONPATH": path}
            | dict(environment or {})
        )
        self._cwd = cwd
        self._news = asyncio.Event()
        self._reading: asyncio.Task[None]
        self._process: asyncio.subprocess.Process
        self.events: list[dict[str, Any]] = []
        self.lines: list[str] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    async def __aenter__(self) -> FoliotProcess:
        self._process = await asyncio.create_subprocess_exec(
            *self._prefix(),
            self._python,
            "-m",
            "foliot",
            *self._arguments,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=self._environment,
            cwd=self._cwd,
            limit=1 << 20,
            pass_fds=self._pass_fds,
            **self._started_as,
        )
        self._reading = asyncio.create_task(self._read(), name="read the log")
        return self

    def _prefix(self) -> list[str]:
        return [] if self._files_max is None else ["sh", "-c", f'ulimit -n {self._files_max} && exec "$0" "$@"']

    async def __aexit__(self, *_: object) -> None:
        self.kill_tree()
        await self._process.wait()
        await self._reading

    async def event(self, name: str, /, *, seconds: float = START_SECONDS, **fields: object) -> dict[str, Any]:
        """Waits for an event with this name and these fields, counted from the start of the process."""
        seen = 0
        try:
            async with asyncio.timeout(seconds):
                while True:
                    for event in self.events[seen:]:
                        if event["event"] == name and all(event.get(key) == value for key, value in fields.items()):
                            return event
                    seen = len(self.events)
                    if self._reading.done():
                        break
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        raise AssertionError(
            f"no {name} {fields} in the log of foliot {' '.join(self._arguments)}:\n" + "\n".join(self.lines[-40:])
        )

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def tree(self) -> list[psutil.Process]:
        """The process and all its descendants, in any session."""
        try:
            top = psutil.Process(self._process.pid)
            return [top, *top.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill_tree(self) -> None:
        """Sends SIGKILL to all of them. Stops them first, so that none reacts to the death of another."""
        tree = self.tree()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in tree:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)

    async def wait(self, *, seconds: float = PATIENCE_SECONDS) -> int:
        async with asyncio.timeout(seconds):
            status = await self._process.wait()
            await asyncio.shield(self._reading)
            return status

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            text = line.decode("utf-8", "replace").rstrip()
            self.lines.append(text)
            with suppress(ValueError):
                entry = json.loads(text)
                if isinstance(entry, dict) and "event" in entry:
                    self.events.append(entry)
            self._news.set()
        self._news.set()


def foliot_up(
    directory: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    user: int | None = None,
) -> FoliotProcess:
    return FoliotProcess(
        "up", "--port", "0", "--data", str(directory), *arguments, environment=environment, cwd=cwd, user=user
    )


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
