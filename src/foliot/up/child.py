"""A supervised child process, and the keeper of the embedded PostgreSQL."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from foliot.assembly import Surroundings
from foliot.embedded import EmbeddedPostgres
from foliot.errors import SchemaError
from foliot.events import ChildDied, ChildStarted
from foliot.service import Service

FIRST_RESTART_SECONDS = 0.2
LAST_RESTART_SECONDS = 10.0
LONG_LIFE_SECONDS = 30.0


class Child(Service):
    """One supervised process. One turn of this service is one life of the process."""

    def __init__(
        self,
        label: str,
        arguments: list[str],
        *,
        around: Surroundings,
        environment: dict[str, str],
        on_misfit: Callable[[], None],
        fds: tuple[int, ...] = (),
    ) -> None:
        super().__init__(clock=around.clock, events=around.events)
        self._label = label
        self._arguments = arguments
        self._environment = environment
        self._fds = fds
        self._process: asyncio.subprocess.Process | None = None
        self._deaths_in_a_row = 0
        self._on_misfit = on_misfit

    @property
    def name(self) -> str:
        return self._label

    @property
    def pid(self) -> int | None:
        """Of its present or last life."""
        return None if self._process is None else self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it was retired and is gone."""
        return self.stopping and self._process is not None and self._process.returncode is not None

    async def run_once(self) -> float:
        born = self.clock.monotonic()
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "foliot", *self._arguments, "--supervised",
            stdin=asyncio.subprocess.PIPE, env=self._environment, pass_fds=self._fds, start_new_session=True,
        )  # fmt: skip
        self.events.emit(ChildStarted(self._label, process.pid))
        if self.stopping:
            self.terminate()
        exit_code = await process.wait()
        if self.stopping:
            return 0
        if exit_code == SchemaError.exit_code:
            self._on_misfit()
        self._deaths_in_a_row = 1 if self.clock.monotonic() - born > LONG_LIFE_SECONDS else self._deaths_in_a_row + 1
        delay = min(FIRST_RESTART_SECONDS * 2.0 ** (self._deaths_in_a_row - 1), LAST_RESTART_SECONDS)
        self.events.emit(ChildDied(self._label, exit_code, delay))
        return float(delay)

    def retire(self) -> None:
        """Does not start the process again once it has ended by itself."""
        self.stop_soon()

    def terminate(self) -> None:
        """Tells the process to drain."""
        self._signal(signal.SIGTERM)

    def hurry(self) -> None:
        """Sends a different signal than `terminate`, because two equal signals in quick succession arrive as one."""
        self._signal(signal.SIGINT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def end(self, seconds: float) -> None:
        """Stops the process for good, and kills it after `seconds`."""
        self.stop_soon()
        self.terminate()
        try:
            async with asyncio.timeout(seconds):
                await self.stop()
        except TimeoutError:
            if self._process is not None and self._process.returncode is None:
                self._process.kill()
            await self.stop()


class PostgresKeeper(Service):
    """Restarts the embedded PostgreSQL if it dies."""

    def __init__(self, server: EmbeddedPostgres, *, around: Surroundings) -> None:
        super().__init__(clock=around.clock, events=around.events)
        self._server = server

    async def run_once(self) -> float:
        await self.clock.wait(self._server.exited, 1.0)
        if self._server.exited.is_set() and not self.stopping:
            self.events.emit(ChildDied("postgres", -1, 0))
            await self._server.start()
        return 0
