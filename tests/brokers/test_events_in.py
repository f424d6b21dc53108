"""Messages of real brokers become jobs, each exactly one, whatever dies in between."""

from __future__ import annotations

import asyncio
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

import asyncpg
import msgspec
import pytest
from redis import Redis

from foliot.brokers.events import SourceFailed, SourceReturned
from foliot.brokers.topics.base import Received, TopicUnavailable
from foliot.brokers.topics.choice import receiver_of
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import Event, EventBus
from foliot.model.source import Source, StoredSource
from foliot.scheduler import source_consumer
from foliot.scheduler.source_keeper import SourceKeeper
from foliot.store.store import Store
from foliot.submission.intake import Intake, Taken
from tests.support.brokers.server import SECRET, BrokerServer
from tests.support.brokers.topics import READERS, TopicReader
from tests.support.processes import FoliotProcess
from tests.support.waiting import until

TOPIC = "orders"
COMES_AGAIN = {"nats": "ACK_SECONDS", "sqs": "HIDDEN_SECONDS"}
"""After how many seconds the broker delivers a message again that nobody acknowledged."""


@pytest.fixture
async def feeder(server: BrokerServer, monkeypatch: pytest.MonkeyPatch, store: Store) -> TopicReader:
    """The topic is empty, and `env:ORDERS_URL` leads to its broker."""
    monkeypatch.setenv("ORDERS_URL", server.url)
    monkeypatch.setattr(source_consumer, "RETRY_SECONDS", 0.1)
    # Not in the module of another broker, whose library would be loaded.
    if server.kind in COMES_AGAIN:
        monkeypatch.setattr(f"foliot.brokers.topics.{server.kind}.{COMES_AGAIN[server.kind]}", 1)
    await store.workers.announce_tasks({"invoice": "mail"})
    reader = READERS[server.kind](server)
    await reader.open([TOPIC])
    return reader


class Keepers:
    """Nodes that receive messages."""

    def __init__(self, store: Store, clock: Clock, events: EventBus) -> None:
        self._store, self._clock, self._events = store, clock, events
        self.running: list[SourceKeeper] = []

    async def start(self) -> SourceKeeper:
        config = Config(secret_references="env:ORDERS_*")
        keeper = SourceKeeper(store=self._store, config=config, clock=self._clock, events=self._events)
        await keeper.start()
        self.running.append(keeper)
        return keeper


@pytest.fixture
async def keepers(store: Store, clock: Clock, events: EventBus) -> AsyncIterator[Keepers]:
    keepers = Keepers(store, clock, events)
    yield keepers
    for keeper in keepers.running:
        await keeper.stop()


async def put(store: Store, feeder: TopicReader, **fields: Any) -> StoredSource:
    rule: dict[str, Any] = {
        "kind": feeder.server.kind,
        "url": "env:ORDERS_URL",
        "topic": feeder.topic_to_receive(TOPIC),
        "task": "invoice",
        "payload": {"number": "{{ message.number }}", "text": "order {{ message.number }}"},
    }
    stored = await store.sources.put_source("orders", Source(**(rule | fields)))
    assert stored is not None
    return stored


def orders(first: int, count: int) -> list[tuple[str, bytes]]:
    return [(f"id-{number}", msgspec.json.encode({"number": number})) for number in range(first, first + count)]


async def payloads(sql: asyncpg.Connection) -> list[dict[str, Any]]:
    return [msgspec.json.decode(row[0]) for row in await sql.fetch("select payload::text from foliot.runs order by id")]


async def numbers(sql: asyncpg.Connection) -> Counter[int]:
    return Counter(payload["number"] for payload in await payloads(sql))


async def test_messages_become_jobs(
    store: Store, feeder: TopicReader, keepers: Keepers, sql: asyncpg.Connection
) -> None:
    await put(store, feeder, filter="message.number > 1", queue="urgent", priority=7, tags=("orders",))
    await keepers.start()
    await feeder.feed(TOPIC, orders(0, 5))
    await until(lambda: _has(sql, 3))
    # A number stays a number where it is the whole text.
    assert await payloads(sql) == [{"number": number, "text": f"order {number}"} for number in (2, 3, 4)]
    row = await sql.fetchrow("select distinct queue, priority, task, state from foliot.runs")
    assert tuple(row) == ("urgent", 7, "invoice", "ready")
    await until(lambda: _is_empty(feeder))
    found = await store.sources.get_source("orders")
    assert found is not None
    assert found.received_at is not None


async def test_poison_becomes_a_dead_message_and_does_not_come_again(
    store: Store, feeder: TopicReader, keepers: Keepers, sql: asyncpg.Connection
) -> None:
    stored = await put(store, feeder)
    await keepers.start()
    poison = [
        b"not json",
        b"[1, 2]",
        b'{"other": 1}',
        b'{"number": "\\u0000"}',
        # SQS carries text only.
        b"\xff\xfe" if feeder.server.kind != "sqs" else b"{]",
        b'{"number": "' + b"x" * 2_000_000 + b'"}' if feeder.server.kind == "redis" else b"{",
    ]
    await feeder.feed(TOPIC, [(f"bad-{place}", body) for place, body in enumerate(poison)] + orders(1, 2))
    await until(lambda: _has(sql, 2))
    await until(lambda: _is_empty(feeder))
    assert await numbers(sql) == {1: 1, 2: 1}
    dead = await store.sources.list_dead_messages(stored.name, before=None, limit=100)
    assert sorted(one.body[:100] for one in dead) == sorted(body[:100] for body in poison)
    assert all(one.reason for one in dead)


async def test_a_message_is_one_job_although_it_was_never_acknowledged(
    store: Store, feeder: TopicReader, keepers: Keepers, sql: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process died between the job and the acknowledgement, again and again."""
    deaths = 3
    open_receiver = receiver_of

    def opened(*positional: Any, **named: Any) -> Any:
        receiver = open_receiver(*positional, **named)
        acknowledge = receiver.acknowledge

        async def die(messages: Sequence[Received]) -> None:
            nonlocal deaths
            deaths -= 1
            if deaths >= 0:
                raise TopicUnavailable("the process dies here")
            await acknowledge(messages)

        receiver.acknowledge = die  # type: ignore[method-assign]
        return receiver

    monkeypatch.setattr(source_consumer, "receiver_of", opened)
    await put(store, feeder)
    await keepers.start()
    # Most brokers deliver the first messages again. For Kafka, PostgreSQL knows that they have been taken.
    for first in range(0, 20, 5):
        await feeder.feed(TOPIC, orders(first, 5))
        await until(lambda: _is_empty(feeder))
    assert deaths < 0
    assert await numbers(sql) == dict.fromkeys(range(20), 1)


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_message_is_one_job_although_the_answer_of_the_database_was_lost(
    store: Store,
    feeder: TopicReader,
    keepers: Keepers,
    sql: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    is_stored: bool,
) -> None:
    losses = 3
    take = Intake.take

    async def lose(self: Intake, *arguments: Any) -> Taken:
        nonlocal losses
        losses -= 1
        if losses < 0:
            return await take(self, *arguments)
        if is_stored:
            await take(self, *arguments)
        raise StoreUnavailable("the connection breaks here")

    monkeypatch.setattr(Intake, "take", lose)
    await put(store, feeder)
    await keepers.start()
    for first in range(0, 20, 5):
        await feeder.feed(TOPIC, orders(first, 5))
        await until(lambda: _is_empty(feeder))
    assert losses < 0
    assert await numbers(sql) == dict.fromkeys(range(20), 1)


async def test_another_node_takes_over_and_two_at_once_do_no_harm(
    store: Store, feeder: TopicReader, keepers: Keepers, sql: asyncpg.Connection
) -> None:
    await put(store, feeder)
    first = await keepers.start()
    await feeder.feed(TOPIC, orders(0, 10))
    await until(lambda: _has(sql, 10))
    # The first one believes that it holds the source, and so does the second one.
    await sql.execute("update foliot.sources set owner = null, expires_at = null")
    second = await keepers.start()
    await feeder.feed(TOPIC, orders(10, 40))
    await until(lambda: _has(sql, 50))
    await first.stop()
    await feeder.feed(TOPIC, orders(50, 5))
    await until(lambda: _has(sql, 55))
    await until(lambda: _is_empty(feeder))
    assert await numbers(sql) == dict.fromkeys(range(55), 1)
    await second.stop()


async def test_a_broker_that_dies_in_the_middle_is_used_again_when_it_is_back(
    store: Store,
    feeder: TopicReader,
    keepers: Keepers,
    sql: asyncpg.Connection,
    server: BrokerServer,
    seen: list[Event],
) -> None:
    await put(store, feeder)
    await keepers.start()
    await feeder.feed(TOPIC, orders(0, 5))
    await until(lambda: _has(sql, 5))
    server.kill()

    async def has_failed() -> bool:
        found = await store.sources.get_source("orders")
        return found is not None and found.error is not None and found.failing_since is not None

    await until(has_failed)
    server.start()
    if not server.keeps_topics:
        await feeder.open([TOPIC])

    async def is_back() -> bool:
        found = await store.sources.get_source("orders")
        return found is not None and found.error is None

    await until(is_back)
    await feeder.feed(TOPIC, orders(5, 5))
    await until(lambda: _has(sql, 10))
    assert await numbers(sql) == dict.fromkeys(range(10), 1)
    assert [type(event) for event in seen if isinstance(event, SourceFailed | SourceReturned)] == [
        SourceFailed,
        SourceReturned,
    ]


async def test_a_key_of_the_message_makes_one_job_of_many_messages(
    store: Store, feeder: TopicReader, keepers: Keepers, sql: asyncpg.Connection
) -> None:
    await put(store, feeder, key="order {{ message.number }}")
    await keepers.start()
    same = msgspec.json.encode({"number": 1})
    await feeder.feed(TOPIC, [("a", same), ("b", same), *orders(2, 1)])
    await until(lambda: _has(sql, 2))
    await until(lambda: _is_empty(feeder))
    assert await numbers(sql) == {1: 1, 2: 1}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"url": "env:ORDERS_WRONG_URL"}, "url: .* refuses the .*"),
        ({"url": "env:ORDERS_MISSING"}, "url: the environment variable ORDERS_MISSING is not set"),
        ({"url": "env:SECRET_OF_OTHERS"}, "url: env:SECRET_OF_OTHERS is not among the secret_references"),
        ({"url": "env:ORDERS_OTHER_URL"}, "url: it is not one of"),
    ],
)
async def test_a_source_that_can_not_be_used_says_why_without_secrets(
    store: Store,
    feeder: TopicReader,
    keepers: Keepers,
    monkeypatch: pytest.MonkeyPatch,
    seen: list[Event],
    change: dict[str, str],
    why: str,
) -> None:
    monkeypatch.setenv("ORDERS_WRONG_URL", feeder.server.wrong_url)
    monkeypatch.setenv("ORDERS_OTHER_URL", f"http://user:{SECRET}@example.org")
    monkeypatch.setenv("SECRET_OF_OTHERS", feeder.server.url)
    await put(store, feeder, **change)
    await keepers.start()

    async def failed() -> SourceFailed | None:
        return next((event for event in seen if isinstance(event, SourceFailed)), None)

    found = await until(failed)
    assert found is not None
    assert re.match(why, found.why), found.why
    assert SECRET not in repr(seen)
    assert "swordfish" not in repr(seen)


async def test_a_topic_that_does_not_exist_is_named_with_the_way_out(
    store: Store, feeder: TopicReader, keepers: Keepers, seen: list[Event]
) -> None:
    if feeder.server.kind == "redis":
        with Redis.from_url(feeder.server.url) as client:
            client.set("missing", "a text")
    await put(store, feeder, topic="missing")
    await keepers.start()

    async def failed() -> SourceFailed | None:
        return next((event for event in seen if isinstance(event, SourceFailed)), None)

    found = await until(failed)
    assert found is not None
    assert re.match(r"topic: .*'missing'.*", found.why), found.why
    assert "\n" not in found.why


@pytest.mark.process
async def test_each_message_is_one_job_although_the_node_is_killed_again_and_again(
    store: Store, database_url: str, feeder: TopicReader, sql: asyncpg.Connection
) -> None:
    if feeder.server.kind in COMES_AGAIN:
        pytest.skip("its messages come again only after a minute; the tests above cover it")
    await put(store, feeder)
    environment = {
        "FOLIOT_DATABASE_URL": database_url,
        "ORDERS_URL": feeder.server.url,
        "FOLIOT_SECRET_REFERENCES": "env:ORDERS_URL",
    }
    total, piece, deaths = 600, 10, 4

    async def feed() -> None:
        for first in range(0, total, piece):
            await feeder.feed(TOPIC, orders(first, piece))

    feeding = asyncio.create_task(feed())
    for death in range(1, deaths + 1):
        async with FoliotProcess("scheduler", environment=environment) as node:
            await until(partial(_has, sql, death * 100))
            node.signal(signal.SIGKILL)
            await node.wait()
        # The next node need not wait for the lease of a dead one.
        await sql.execute("update foliot.sources set expires_at = '-infinity'")
    await feeding
    async with FoliotProcess("scheduler", environment=environment):
        await until(lambda: _has(sql, total))
        await until(lambda: _is_empty(feeder))
    assert await numbers(sql) == dict.fromkeys(range(total), 1)


async def _has(sql: asyncpg.Connection, count: int) -> bool:
    return bool(await sql.fetchval("select count(*) >= $1 from foliot.runs", count))


async def _is_empty(feeder: TopicReader) -> bool:
    await asyncio.sleep(0.05)
    return await feeder.unacknowledged(TOPIC) == 0
