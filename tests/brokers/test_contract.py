"""The contract of brokers, each on a real server."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

import pytest

from foliot.brokers.base import ANSWER_SECONDS, HINTS_MAX, Broker, BrokerUnavailable
from foliot.errors import ConfigurationError
from foliot.model.ids import new_id
from foliot.model.run import StartableRun
from tests.support.brokers.server import SECRET, BrokerServer
from tests.support.waiting import PATIENCE_SECONDS, until

WAIT = 0.2


def ready(number: int, *, priority: int = 0, first_rank: int = 1_800_000_000_000_000) -> list[StartableRun]:
    return [StartableRun(new_id(), first_rank + place, priority) for place in range(number)]


def ids(runs: list[StartableRun]) -> list[UUID]:
    return [run.id for run in runs]


async def receive(broker: Broker, queue: str, number: int) -> list[UUID]:
    """Receives until there are enough."""
    found: list[UUID] = []

    async def more() -> bool:
        found.extend(await broker.receive(queue, number - len(found), WAIT))
        return len(found) >= number

    await until(more)
    return found


async def test_hints_arrive_once_and_those_of_another_queue_do_not(broker: Broker) -> None:
    runs, others = ready(20), ready(5)
    await asyncio.gather(*(broker.receive(queue, 1, 0.05) for queue in ("mail", "default")))
    await broker.publish("mail", runs)
    await broker.publish("default", others)
    assert sorted(await receive(broker, "mail", 20)) == sorted(ids(runs))
    assert sorted(await receive(broker, "default", 5)) == sorted(ids(others))
    assert await broker.receive("mail", 10, WAIT) == []


async def test_urgent_hints_come_first(broker: Broker, server: BrokerServer) -> None:
    await broker.receive("urgent", 1, 0.05)
    levels = [ready(3, priority=priority, first_rank=rank) for priority, rank in ((-5, 40), (0, 30), (5, 20), (50, 10))]
    for runs in levels:
        await broker.publish("urgent", runs)
    await asyncio.sleep(server.settle_seconds)
    received = await receive(broker, "urgent", 12)
    if not server.keeps_levels:
        assert received[0] in ids(levels[-1])
        assert sorted(received) == sorted(run_id for runs in levels for run_id in ids(runs))
        return
    for runs in reversed(levels):
        arrived, received = received[:3], received[3:]
        assert (arrived if server.keeps_order else sorted(arrived)) == ids(runs)


async def test_no_more_hints_arrive_than_requested(broker: Broker) -> None:
    await broker.receive("few", 1, 0.05)
    await broker.publish("few", ready(10))
    assert len(await until(lambda: broker.receive("few", 1, WAIT))) == 1
    assert len(await until(lambda: broker.receive("few", 4, WAIT))) <= 4


async def test_a_hint_ends_a_wait(broker: Broker) -> None:
    runs = ready(1)
    await broker.receive("waiting", 1, 0.05)

    async def wait() -> list[UUID]:
        return await until(lambda: broker.receive("waiting", 5, 0.5))

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0.1)
    await broker.publish("waiting", runs)
    assert await waiting == ids(runs)


async def test_a_worker_that_comes_later_gets_hints_too(broker: Broker, server: BrokerServer) -> None:
    later = server.broker()
    await broker.publish("shared", ready(1))
    await receive(broker, "shared", 1)

    async def has_hints() -> bool:
        await broker.publish("shared", ready(16))
        await broker.receive("shared", 4, WAIT)
        return bool(await later.receive("shared", 4, WAIT))

    try:
        await until(has_hints)
    finally:
        await later.close()


async def test_names_of_namespaces_and_queues_do_not_mix(broker: Broker) -> None:
    queues = ["a/b", "a.b", "a:b", "a_b", "a-b"]
    for queue in queues:
        await broker.receive(queue, 1, 0.05)
    runs = {queue: ready(1) for queue in queues}
    for queue, found in runs.items():
        await broker.publish(queue, found)
    for queue, found in runs.items():
        assert await receive(broker, queue, 1) == ids(found)


async def test_a_broker_holds_a_bounded_number_of_hints(broker: Broker, server: BrokerServer) -> None:
    for _ in range(4):
        await broker.publish("full", ready(HINTS_MAX))
    assert await server.count("full") <= HINTS_MAX


async def test_forged_messages_are_dropped(broker: Broker, server: BrokerServer) -> None:
    run = ready(1)
    await broker.receive("forged", 1, 0.05)
    await server.forge("forged", [b"", b"drop table", b"\xff\xfe", b"0" * 5000, str(run[0].id).encode()])
    assert await receive(broker, "forged", 1) == ids(run)
    assert await broker.receive("forged", 10, WAIT) == []


@pytest.mark.parametrize("harm", ["kill", "freeze"])
async def test_a_broker_that_is_gone_is_noticed_soon_and_used_again_when_it_is_back(
    broker: Broker, server: BrokerServer, harm: str
) -> None:
    async def is_gone() -> bool:
        try:
            await broker.receive("gone", 1, ANSWER_SECONDS / 2)
        except BrokerUnavailable:
            return True
        return False

    async def is_back() -> bool:
        try:
            await broker.publish("gone", ready(1))
            return bool(await broker.receive("gone", 1, WAIT))
        except BrokerUnavailable:
            return False

    await until(is_back)
    getattr(server, harm)()
    try:
        began = time.monotonic()
        await until(is_gone)
        # The guarantee is two seconds until work continues from PostgreSQL; the machine may be busy.
        assert time.monotonic() - began < 4
        with pytest.raises(BrokerUnavailable):
            await broker.publish("gone", ready(1))
    finally:
        server.start() if harm == "kill" else server.thaw()
    await until(is_back)


async def test_a_wrong_password_is_refused_in_one_sentence(server: BrokerServer) -> None:
    broker = server.broker(dispatch_url=server.wrong_url)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            with pytest.raises(ConfigurationError, match=r"^dispatch_url: ") as refused:
                await broker.connect()
    finally:
        await broker.close()
    assert SECRET not in refused.value.detail
    assert "swordfish" not in refused.value.detail
    assert "\n" not in refused.value.detail


async def test_a_broker_that_is_away_does_not_answer(server: BrokerServer) -> None:
    broker = server.broker(dispatch_url=server.url.replace(str(server.port), "9"))
    try:
        with pytest.raises(BrokerUnavailable):
            await broker.connect()
    finally:
        await broker.close()
