"""The start of a worker without database access: it asks the server for the settings that both must share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import msgspec

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import ConfigurationError, FoliotError, Forbidden, StoreUnavailable, Unauthenticated
from foliot.events import EventBus, ServiceFailed
from foliot.model.worker_protocol import WorkerSettings
from foliot.sdk.server_address import ServerAddress
from foliot.service import backoff
from foliot.worker.remote.backend import RemoteBackend
from foliot.worker.remote.connection import Connection

NEEDS_DATABASE = "wait_for_row"


@asynccontextmanager
async def connected(
    address: ServerAddress, stopping: asyncio.Event, hurried: asyncio.Event, *, clock: Clock, events: EventBus
) -> AsyncIterator[tuple[RemoteBackend, Callable[[Config], Config]] | None]:
    """The backend of a worker, and the function that adapts its configuration. None: it was stopped before the server
    was up.

    If the server refuses the token later, sets both events. Raises `ConfigurationError` at the end, or at once.
    """
    loop, refusals = asyncio.get_running_loop(), list[FoliotError]()

    def refused(error: FoliotError) -> None:
        # From the thread of the heartbeat, too.
        refusals.append(error)
        for event in (stopping, hurried):
            loop.call_soon_threadsafe(event.set)

    async with Connection(address, clock=clock, on_refused=refused) as connection:
        try:
            settings = await settings_of(connection, stopping, clock=clock, events=events)
        except (Unauthenticated, Forbidden) as error:
            raise ConfigurationError(error.detail) from None
        if settings is None:
            yield None
            return
        backend = RemoteBackend(connection, address, settings, clock=clock, events=events, on_refused=refused)
        yield backend, partial(adapted, settings=settings)
    if refusals:
        raise ConfigurationError(refusals[0].detail)


async def settings_of(
    connection: Connection, stopping: asyncio.Event, *, clock: Clock, events: EventBus
) -> WorkerSettings | None:
    """Waits for a server that is not up yet. None: the worker was stopped meanwhile. Raises the error of a server that
    refuses this worker, or that is none of ours."""
    failures = 0
    while not stopping.is_set():
        try:
            return await connection.get("settings", WorkerSettings)
        except StoreUnavailable as error:
            failures += 1
            delay = backoff(failures)
            events.emit(ServiceFailed("Connection", error.detail, round(delay, 2)))
            await clock.wait(stopping, delay)
    return None


def adapted(config: Config, settings: WorkerSettings) -> Config:
    """The configuration of a worker whose server decides about leases and limits."""
    disabled = [name.strip() for name in config.disabled_tasks.split(",") if name.strip()]
    return msgspec.structs.replace(
        config,
        namespace=settings.namespace,
        worker_ttl_seconds=settings.lease_seconds,
        worker_beat_seconds=settings.beat_seconds,
        result_max_bytes=min(config.result_max_bytes, settings.result_max_bytes),
        output_max_bytes=min(config.output_max_bytes, settings.output_max_bytes),
        # It looks into a database.
        disabled_tasks=", ".join(dict.fromkeys([*disabled, NEEDS_DATABASE])),
    )
