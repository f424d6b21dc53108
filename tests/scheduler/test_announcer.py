"""Ready runs are announced to workers even if no hint was sent for them."""

from __future__ import annotations

import asyncio
from typing import Any

from foliot import App
from foliot.config import Config
from foliot.events import EventBus, RunsClaimed
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.scheduler.announcer import Announcer
from foliot.store.store import Store
from tests.support.waiting import PATIENCE_SECONDS
from tests.support.workers import worker_node

# A poll interval longer than any test.
NEVER_SECONDS = 3600.0


async def test_each_queue_with_ready_runs_is_found_by_one_lookup(store: Store, sql: Any) -> None:
    assert await store.due_runs.ready_queues(10) == []
    queues = ["a", "b", "b", "c"]
    await store.run_inserts.insert_runs([NewRun(id=new_id(), task="t", queue=queue) for queue in queues * 50])
    await store.run_inserts.insert_runs([NewRun(id=new_id(), task="t", queue="later", delay_seconds=60)])
    assert await store.due_runs.ready_queues(10) == ["a", "b", "c"]
    assert await store.due_runs.ready_queues(2) == ["a", "b"]


async def test_a_worker_that_polls_rarely_is_woken_for_jobs_stored_without_a_hint(
    store: Store, events: EventBus
) -> None:
    app = App()

    @app.task
    async def quiet() -> None: ...

    clock = store.database.clock
    announcer = Announcer(store=store, config=Config(poll_seconds=0.05), clock=clock, events=events)
    async with (
        worker_node(store, app, config=Config(poll_seconds=NEVER_SECONDS)) as node,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        while not node.claimer._is_listening():
            await asyncio.sleep(0.01)
        await announcer.start()
        with events.expect(RunsClaimed) as claimed:
            await store.run_inserts.insert_runs([NewRun(id=new_id(), task="quiet", queue="default")])
            await claimed
        await announcer.stop()
