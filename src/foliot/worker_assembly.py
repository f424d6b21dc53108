"""The composition root of workers, with and without access to the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from foliot.assembly import (
    Stop,
    Surroundings,
    broker_for,
    coordinator_for,
    counted_store_for,
    listen_url_of,
    settle,
    surroundings,
    tracing_of,
    until_set_or_done,
)
from foliot.brokers.base import Broker
from foliot.config import Config
from foliot.coordination.base import Coordinator
from foliot.events import ProcessStarted, ProcessStopped
from foliot.sdk.app import App
from foliot.sdk.server_address import ServerAddress
from foliot.service import own_task

if TYPE_CHECKING:
    from foliot.worker.backend import Backend
    from foliot.worker.node import WorkerNode


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one worker."""

    app: App
    queues: Mapping[str, int]
    labels: Mapping[str, str] | None = None


async def run_worker(config: Config, stop: Stop, work: Work) -> None:
    from foliot.worker.direct import DirectBackend

    around = surroundings(config, "worker")
    new_coordinator = await liveness_of(around)
    async with broker_for(around) as broker, counted_store_for(around, "worker", stop) as store:
        backend = DirectBackend(
            store,
            config=config,
            clock=around.clock,
            listen_url=listen_url_of(config, store),
            new_coordinator=new_coordinator,
        )
        await _work(work, backend, around, stop, broker)
    around.events.emit(ProcessStopped("worker"))


async def liveness_of(around: Surroundings) -> Callable[[], Coordinator] | None:
    """Makes the coordinator in which this worker shows that it is alive, if it is to. Raises `ConfigurationError` if
    the coordinator refuses this process."""
    if around.config.worker_liveness == "postgres":
        return None
    from foliot.coordination.choice import coordinator_of

    async with coordinator_for(around):
        return partial(coordinator_of, around.config, clock=around.clock)


async def run_remote_worker(config: Config, stop: Stop, work: Work, address: ServerAddress) -> None:
    """A worker without database access. It stops, and raises, if the server refuses its token."""
    from foliot.worker.remote.start import connected

    around = surroundings(config, "worker")
    async with connected(address, stop.asked, stop.hurried, clock=around.clock, events=around.events) as started:
        if started is not None:
            backend, adapted = started
            await _work(work, backend, replace(around, config=adapted(config)), stop, None)
    around.events.emit(ProcessStopped("worker"))


async def _work(work: Work, backend: Backend, around: Surroundings, stop: Stop, broker: Broker | None) -> None:
    """Runs a worker until it is asked to stop, or is drained."""
    from foliot.worker.node import WorkerNode

    node = WorkerNode(
        backend=backend,
        config=around.config,
        clock=around.clock,
        events=around.events,
        app=work.app,
        queues=work.queues,
        labels=work.labels,
        broker=broker,
        tracing=tracing_of(around.config, around),
    )
    settle()
    await node.start()
    around.events.emit(ProcessStarted("worker"))
    drained = own_task(node.drained(), name="drained")
    await until_set_or_done(stop.asked, drained)
    drained.cancel()
    hurrying = own_task(_hurry(stop, node), name="hurry")
    await node.stop()
    hurrying.cancel()


async def _hurry(stop: Stop, node: WorkerNode) -> None:
    await stop.hurried.wait()
    node.hurry()
