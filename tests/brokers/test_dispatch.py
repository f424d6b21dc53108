"""Jobs through a broker, from the scheduler to the worker, while the broker is killed, frozen, wiped and lied to."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from foliot import App
from foliot.brokers.events import BrokerLost, HintsPublished
from foliot.config import Config
from foliot.events import Event, EventBus
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.scheduler.node import SchedulerNode
from foliot.store.queue_limits import QueueLimits
from foliot.store.store import Store
from foliot.worker.node import WorkerNode
from tests.support.brokers.server import BrokerServer
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.workers import ended, submit, worker_node

NEVER_SECONDS = 3600.0
# Nothing but the broker starts a run in time.
BROKER_ONLY = Config(poll_seconds=NEVER_SECONDS, grace_seconds=5)
USUAL = Config(poll_seconds=1, grace_seconds=5)


class Shop:
    """An app that counts how often each run was started."""

    def __init__(self) -> None:
        self.app = App()
        self.started: Counter[int] = Counter()
        self.order: list[int] = []

        @self.app.task
        async def sell(number: int = 0) -> None:
            self.started[number] += 1
            self.order.append(number)


@asynccontextmanager
async def scheduler_with(store: Store, server: BrokerServer, *, poll_seconds: float = 1.0) -> AsyncIterator[None]:
    broker = server.broker()
    node = SchedulerNode(
        store=store,
        config=Config(poll_seconds=poll_seconds),
        clock=store.database.clock,
        events=store.events,
        listen_url=store.database.url,
        broker=broker,
    )
    await node.start()
    try:
        yield
    finally:
        await node.stop()
        await broker.close()


@asynccontextmanager
async def worker_with(store: Store, shop: Shop, server: BrokerServer, config: Config) -> AsyncIterator[WorkerNode]:
    broker = server.broker()
    async with worker_node(store, shop.app, config=config, broker=broker) as node:
        yield node
    await broker.close()


async def all_end(store: Store, runs: list[NewRun]) -> None:
    for run in runs:
        assert (await ended(store, run)).state is RunState.SUCCEEDED


async def sell(store: Store, count: int, first: int = 0) -> list[NewRun]:
    runs = [
        NewRun(id=new_id(), task="sell", queue="default", payload=f'{{"number": {first + n}}}') for n in range(count)
    ]
    await store.run_inserts.insert_runs(runs)
    store.hints.send(["default"])
    return runs


async def test_runs_start_by_the_broker_alone(store: Store, server: BrokerServer, seen: list[Event]) -> None:
    shop = Shop()
    async with scheduler_with(store, server), worker_with(store, shop, server, BROKER_ONLY):
        # Stored without a hint of PostgreSQL, as by a user's own SQL: the scheduler finds them.
        unannounced = [NewRun(id=new_id(), task="sell", queue="default", payload='{"number": -1}')]
        await store.run_inserts.insert_runs(unannounced)
        runs = await sell(store, 300)
        await all_end(store, [*unannounced, *runs])
    assert set(shop.started.values()) == {1}
    assert len(shop.started) == 301
    assert any(isinstance(event, HintsPublished) for event in seen)
    assert not any(isinstance(event, BrokerLost) for event in seen)


async def test_the_order_of_claims_holds(store: Store, server: BrokerServer) -> None:
    shop = Shop()
    runs = [await submit(store, "sell", payload=f'{{"number": {n}}}', priority=n * 20) for n in range(4)]
    async with scheduler_with(store, server), worker_with(store, shop, server, BROKER_ONLY):
        await all_end(store, runs)
    assert sorted(shop.order) == [0, 1, 2, 3]


@pytest.mark.parametrize("harm", ["kill", "freeze"])
async def test_work_continues_without_the_broker_and_returns_to_it(
    store: Store, events: EventBus, server: BrokerServer, harm: str
) -> None:
    shop = Shop()
    async with scheduler_with(store, server), worker_with(store, shop, server, USUAL) as node:
        await all_end(store, await sell(store, 10))
        try:
            with events.expect(BrokerLost) as lost:
                getattr(server, harm)()
                began = time.monotonic()
                await all_end(store, await sell(store, 10, first=10))
                took = time.monotonic() - began
                await asyncio.wait_for(lost, PATIENCE_SECONDS)
            await until(lambda: _is(not node.claimer._follows_broker()))
            await all_end(store, await sell(store, 10, first=20))
        finally:
            server.start() if harm == "kill" else server.thaw()
        await until(lambda: _is(node.claimer._follows_broker()))
        await all_end(store, await sell(store, 10, first=30))
    # Two seconds are promised; the machine may be busy.
    assert took < 5
    assert set(shop.started.values()) == {1}


async def _is(answer: bool) -> bool:
    return answer


async def test_a_wiped_broker_loses_no_run(store: Store, server: BrokerServer) -> None:
    shop = Shop()
    async with scheduler_with(store, server):
        runs = await sell(store, 50)
        await until(lambda: server.count("default"))
        await server.wipe()
        async with worker_with(store, shop, server, BROKER_ONLY):
            await all_end(store, runs)
    assert set(shop.started.values()) == {1}


async def test_a_broker_that_loses_its_queues_under_way_is_used_again(store: Store, server: BrokerServer) -> None:
    shop = Shop()
    async with scheduler_with(store, server), worker_with(store, shop, server, BROKER_ONLY) as node:
        for first in (0, 10, 20):
            await all_end(store, await sell(store, 10, first=first))
            await server.delete()
        await all_end(store, await sell(store, 10, first=30))
        await until(lambda: _is(node.claimer._follows_broker()))
        await all_end(store, await sell(store, 10, first=40))
    assert len(shop.started) == 50
    assert set(shop.started.values()) == {1}


async def test_hints_that_come_often_and_in_any_order_start_each_run_once(store: Store, server: BrokerServer) -> None:
    shop, other = Shop(), Shop()
    async with (
        scheduler_with(store, server),
        worker_with(store, shop, server, BROKER_ONLY),
        worker_with(store, other, server, BROKER_ONLY),
    ):
        await all_end(store, await sell(store, 1, first=-1))
        runs = await sell(store, 100)
        hints = [str(run.id).encode() for run in runs] * 3
        Random(7).shuffle(hints)
        await server.forge("default", hints)
        await all_end(store, runs)
    started = shop.started + other.started
    assert len(started) == 101
    assert set(started.values()) == {1}


async def test_a_worker_finds_runs_that_nobody_announces(store: Store, server: BrokerServer) -> None:
    """No scheduler node runs at all."""
    shop = Shop()
    async with worker_with(store, shop, server, Config(poll_seconds=0.2, grace_seconds=5)):
        await all_end(store, await sell(store, 60))


async def test_lies_start_nothing_that_may_not_start(store: Store, server: BrokerServer) -> None:
    shop = Shop()
    await store.pauses.put_pause("queue", "paused", None, None, None)
    async with worker_with(store, shop, server, BROKER_ONLY) as node:
        assert node.claimer.inbox is not None
        paused, later = (
            NewRun(id=new_id(), task="sell", queue="paused"),
            NewRun(id=new_id(), task="sell", queue="default", delay_seconds=NEVER_SECONDS),
        )
        elsewhere = NewRun(id=new_id(), task="sell", queue="elsewhere")
        unknown = NewRun(id=new_id(), task="unknown", queue="default")
        honest = NewRun(id=new_id(), task="sell", queue="default")
        await store.run_inserts.insert_runs([paused, later, elsewhere, unknown, honest])
        lies = [run.id for run in (paused, later, elsewhere, unknown)]
        await server.forge("default", [str(run_id).encode() for run_id in (new_id(), *lies)])
        await server.forge("default", [str(honest.id).encode()])
        await all_end(store, [honest])
        # Once more: it has ended.
        await server.forge("default", [str(honest.id).encode(), str(honest.id).encode()])
        last = NewRun(id=new_id(), task="sell", queue="default", payload='{"number": 9}')
        await store.run_inserts.insert_runs([last])
        await server.forge("default", [str(last.id).encode()])
        await all_end(store, [last])
    assert shop.started == {0: 1, 9: 1}


async def test_a_queue_with_a_limit_keeps_it(store: Store, server: BrokerServer) -> None:
    app, at_once, most = App(), 0, 0

    @app.task
    async def slow() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1

    await store.queues.put_queue("default", QueueLimits(max_running=2))
    shop = Shop()
    shop.app = app
    quick = Config(poll_seconds=1, worker_ttl_seconds=15, worker_beat_seconds=0.5, grace_seconds=5)
    async with scheduler_with(store, server), worker_with(store, shop, server, quick):
        runs = [await submit(store, "slow") for _ in range(12)]
        await all_end(store, runs)
    assert most <= 2
