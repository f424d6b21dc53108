"""A worker node inside the test process, on the real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from foliot.brokers.base import Broker
from foliot.config import Config
from foliot.model.ids import new_id
from foliot.model.run import NewRun, RunView
from foliot.model.states import TERMINAL
from foliot.sdk.app import App
from foliot.store.store import Store
from foliot.worker.direct import DirectBackend
from foliot.worker.node import WorkerNode
from tests.support.waiting import PATIENCE_SECONDS, until

# A lease long enough to survive a few seconds of a busy machine.
QUICK = Config(poll_seconds=0.05, worker_ttl_seconds=15, worker_beat_seconds=1, grace_seconds=5)


@asynccontextmanager
async def worker_node(
    store: Store, app: App, *, config: Config = QUICK, slots: int = 10, broker: Broker | None = None
) -> AsyncIterator[WorkerNode]:
    clock, events = store.database.clock, store.events
    node = WorkerNode(
        backend=DirectBackend(store, config=config, clock=clock, listen_url=store.database.url),
        config=config,
        clock=clock,
        events=events,
        app=app,
        queues={"default": slots},
        broker=broker,
    )
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def submit(store: Store, task: str, **fields: object) -> NewRun:
    run = NewRun(id=new_id(), task=task, queue="default", **fields)  # type: ignore[arg-type]
    await store.run_inserts.insert_runs([run])
    store.hints.send(["default"])
    return run


async def ended(store: Store, run: NewRun, *, seconds: float = PATIENCE_SECONDS) -> RunView:
    """Waits until the run is terminal."""

    async def look() -> RunView | None:
        view = await store.runs.get_run(run.id)
        return view if view is not None and view.state in TERMINAL else None

    view = await until(look, seconds=seconds)
    assert view is not None
    return view
