"""Everything on one machine: an embedded PostgreSQL, and the API, a scheduler node and workers as child processes.

A child that dies is restarted, with a backoff if it dies again soon. Children hold a pipe from this process and exit
when it closes. This process owns the API's socket, so that clients wait during a restart of the API instead of being
refused.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from foliot.assembly import (
    Stop,
    Surroundings,
    broker_for,
    check_tokens,
    coordinator_for,
    run_migrate,
    store_for,
    surroundings,
)
from foliot.config import PREFIX, SECRETS, SOURCES, Config, worker_range
from foliot.embedded import EmbeddedPostgres
from foliot.errors import SchemaError
from foliot.events import ProcessStarted, ProcessStopped, ProcessStopping
from foliot.model.scaling import Bounds
from foliot.store.store import Store
from foliot.up.child import Child, PostgresKeeper
from foliot.up.worker_pool import WorkerPool

STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Parts:
    others: tuple[Child, ...]
    """The API and the scheduler node."""
    workers: WorkerPool


async def run_up(
    config: Config,
    stop: Stop,
    *,
    listening: socket.socket,
    app: str | None,
    queues: Collection[str],
    sources: Mapping[str, str] | None = None,
    on_ready: Callable[[str], Awaitable[None]] | None = None,
) -> None:
    """Runs until a stop is requested. `queues` are those that the workers serve. `on_ready` gets the URL of the API
    once it answers."""

    around, misfit = surroundings(config, "up"), asyncio.Event()

    def on_misfit() -> None:
        misfit.set()
        stop.asked.set()

    async with broker_for(around), coordinator_for(around):
        # Services that refuse this user are an error now, instead of one in each child, again and again.
        pass
    async with AsyncExitStack() as stack:
        if not config.database_url:
            server = EmbeddedPostgres(Path(config.data), clock=around.clock, binaries=config.pg_bin)
            stack.push_async_callback(server.stop)
            config = msgspec.structs.replace(config, database_url=await server.start())
            keeper = PostgresKeeper(server, around=around)
            await keeper.start()
            stack.push_async_callback(keeper.stop)
        await run_migrate(config)
        least, most = worker_range(config.workers)
        address, port = listening.getsockname()[:2]
        is_open = ipaddress.ip_address(address).is_loopback
        if not is_open:
            async with store_for(around, "up") as store:
                await check_tokens(store)
        listening.listen(2048)
        looking = await stack.enter_async_context(store_for(around, "up")) if least != most else None
        parts = parts_of(
            config,
            around,
            listening,
            app,
            queues=queues,
            sources=sources or {},
            is_open=is_open,
            on_misfit=on_misfit,
            store=looking,
        )
        stack.push_async_callback(_end, parts, stop, config.grace_seconds)
        for part in (*parts.others, parts.workers):
            await part.start()
        await _answers(address, port, stop)
        url = f"{'https' if config.tls_certificate_file else 'http'}://{_url_host(address)}:{port}"
        around.events.emit(ProcessStarted("up", url))
        if on_ready is not None and not stop.asked.is_set():
            await on_ready(url)
        await stop.asked.wait()
        around.events.emit(ProcessStopping("up"))
    around.events.emit(ProcessStopped("up"))
    if misfit.is_set():
        raise SchemaError(
            "the database's schema is too new for this version of Foliot: install a newer Foliot and start it again"
        )


def parts_of(
    config: Config,
    around: Surroundings,
    listening: socket.socket,
    app: str | None,
    *,
    queues: Collection[str],
    sources: Mapping[str, str],
    is_open: bool,
    on_misfit: Callable[[], None],
    store: Store | None,
) -> Parts:
    secrets = {name: secret_file(value) for name in SECRETS if (value := getattr(config, name))}
    environment = environment_for(config, secrets) | {SOURCES: msgspec.json.encode(dict(sources)).decode()}
    passed, descriptor = tuple(secrets.values()), listening.fileno()
    serve = ["server", "--listen-fd", str(descriptor), *(["--open"] if is_open else [])]
    child = partial(Child, around=around, environment=environment, on_misfit=on_misfit)
    work = ["worker", app] if app else ["worker"]
    workers = WorkerPool(
        bounds=Bounds(*worker_range(config.workers), config.workers_shrink_seconds),
        make=lambda number: child(f"worker-{number}", work, fds=passed),
        queues=queues,
        store=store,
        around=around,
    )
    api = child("server", serve, fds=(descriptor, *passed))
    return Parts((api, child("scheduler", ["scheduler"], fds=passed)), workers)


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


async def _end(parts: Parts, stop: Stop, grace_seconds: float) -> None:
    """Stops the children: workers drain first, while the others still serve them."""
    await parts.workers.stop()
    workers = parts.workers.children

    async def pass_on_the_hurry() -> None:
        await stop.hurried.wait()
        for child in (*workers, *parts.others):
            child.hurry()

    hurrying = asyncio.create_task(pass_on_the_hurry(), name="pass on the hurry")
    await asyncio.gather(*(child.end(grace_seconds + STOP_SECONDS) for child in workers))
    await asyncio.gather(*(child.end(STOP_SECONDS) for child in parts.others))
    hurrying.cancel()


def _url_host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


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
