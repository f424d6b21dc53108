"""Everything on one machine: an embedded PostgreSQL, and the API, a scheduler node and workers as child processes.

A child that dies is restarted, with a backoff if it dies again soon. Children hold a pipe from this process and exit
when it closes. This process owns the API's socket, so that clients wait during a restart of the API instead of being
refused.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

import msgspec

from foliot.assembly import Stop, Surroundings, check_tokens, run_migrate, store_for, surroundings
from foliot.config import PREFIX, SECRETS, Config
from foliot.embedded import EmbeddedPostgres
from foliot.errors import SchemaError
from foliot.events import ChildDied, ChildStarted, ProcessStarted, ProcessStopped, ProcessStopping
from foliot.service import Service

FIRST_RESTART_SECONDS = 0.2
LAST_RESTART_SECONDS = 10.0
LONG_LIFE_SECONDS = 30.0
STOP_SECONDS = 10.0


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


async def run_up(config: Config, stop: Stop, *, listening: socket.socket, app: str | None) -> None:
    around, misfit = surroundings(config, "up"), asyncio.Event()

    def on_misfit() -> None:
        misfit.set()
        stop.asked.set()

    async with AsyncExitStack() as stack:
        if not config.database_url:
            server = EmbeddedPostgres(Path(config.data), clock=around.clock, binaries=config.pg_bin)
            stack.push_async_callback(server.stop)
            config = msgspec.structs.replace(config, database_url=await server.start())
            keeper = PostgresKeeper(server, around=around)
            await keeper.start()
            stack.push_async_callback(keeper.stop)
        await run_migrate(config)
        address, port = listening.getsockname()[:2]
        is_open = ipaddress.ip_address(address).is_loopback
        if not is_open:
            async with store_for(around, "up") as store:
                await check_tokens(store)
        listening.listen(2048)
        children = children_of(config, around, listening, app, is_open=is_open, on_misfit=on_misfit)
        stack.push_async_callback(_end, children, stop, config.grace_seconds)
        for child in children:
            await child.start()
        await _answers(address, port, stop)
        around.events.emit(
            ProcessStarted("up", f"{'https' if config.tls_certificate_file else 'http'}://{address}:{port}")
        )
        await stop.asked.wait()
        around.events.emit(ProcessStopping("up"))
    around.events.emit(ProcessStopped("up"))
    if misfit.is_set():
        raise SchemaError(
            "the database's schema is too new for this version of Foliot: install a newer Foliot and start it again"
        )


def children_of(
    config: Config,
    around: Surroundings,
    listening: socket.socket,
    app: str | None,
    *,
    is_open: bool,
    on_misfit: Callable[[], None],
) -> list[Child]:
    secrets = {name: secret_file(value) for name in SECRETS if (value := getattr(config, name))}
    environment = environment_for(config, secrets)
    passed, descriptor = tuple(secrets.values()), listening.fileno()
    serve = ["server", "--listen-fd", str(descriptor), *(["--open"] if is_open else [])]
    child = partial(Child, around=around, environment=environment, on_misfit=on_misfit)
    api = child("server", serve, fds=(descriptor, *passed))
    scheduler = child("scheduler", ["scheduler"], fds=passed)
    work = ["worker", app] if app else ["worker"]
    workers = [child(f"worker-{number}", work, fds=passed) for number in range(1, config.workers + 1)]
    return [api, scheduler, *workers]


def environment_for(config: Config, secrets: Mapping[str, int]) -> dict[str, str]:
    """This process's environment with all its settings, from any source. Secrets are in descriptors."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    settings = msgspec.to_builtins(config)
    for name in SECRETS:
        del settings[name], settings[f"{name}_file"]
    settings |= {f"{name}_file": f"fd:{descriptor}" for name, descriptor in secrets.items()}
    return kept | {PREFIX + name.upper(): str(value) for name, value in settings.items()}


def secret_file(content: str) -> int:
    """A file in memory: while a child starts, other processes of the same user can read its environment."""
    descriptor = os.memfd_create("foliot")
    os.write(descriptor, content.encode())
    return descriptor


async def _end(children: list[Child], stop: Stop, grace_seconds: float) -> None:
    """Stops the children: workers drain first, while the others still serve them."""

    async def pass_on_the_hurry() -> None:
        await stop.hurried.wait()
        for child in children:
            child.hurry()

    hurrying = asyncio.create_task(pass_on_the_hurry(), name="pass on the hurry")
    workers, others = children[2:], children[:2]
    await asyncio.gather(*(child.end(grace_seconds + STOP_SECONDS) for child in workers))
    await asyncio.gather(*(child.end(STOP_SECONDS) for child in others))
    hurrying.cancel()


async def _answers(address: str, port: int, stop: Stop) -> None:
    """Returns when the API has answered a first request, or when a stop is requested."""

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(address, port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        await reader.readline()
        writer.close()

    asking = asyncio.create_task(ask(), name="ask the API")
    stopping = asyncio.create_task(stop.asked.wait(), name="wait for stop")
    await asyncio.wait([asking, stopping], return_when=asyncio.FIRST_COMPLETED)
    for task in (asking, stopping):
        task.cancel()
