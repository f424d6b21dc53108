"""Events of runs and ticks arrive in the topics of real brokers, whatever happens to the broker or to Foliot."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from foliot.assembly import Stop, run_scheduler
from foliot.brokers.topics.base import TopicUnavailable
from foliot.brokers.topics.choice import sender_of
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import ConfigurationError
from foliot.events import EventBus
from foliot.exporters.broker_events import EventExporter
from foliot.exporters.exporter import LEASE_SECONDS
from foliot.model.outcome import Outcome, error_of
from foliot.model.states import RunState
from foliot.store.queries import Query
from foliot.store.store import Store
from tests.support.brokers.server import SECRET, BrokerServer
from tests.support.brokers.topics import READERS, TopicReader
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.waiting import until

TOPIC, DEAD = "foliot-events", "dead_letter_queue"


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
async def topics(server: BrokerServer) -> TopicReader:
    reader = READERS[server.kind](server)
    await reader.open([TOPIC, DEAD])
    return reader


class Exporters:
    """Makes exporters that have begun, and closes them."""

    def __init__(self, store: Store, server: BrokerServer, clock: Clock, events: EventBus) -> None:
        self._store, self._server, self._clock, self._events = store, server, clock, events
        self.made: list[EventExporter] = []

    def make(self, **settings: Any) -> EventExporter:
        config = Config(**{"events_url": self._server.url} | settings)
        sender = sender_of("events_url", config.events_url)
        exporter = EventExporter(
            store=self._store, sender=sender, config=config, clock=self._clock, events=self._events
        )
        self.made.append(exporter)
        return exporter


@pytest.fixture
async def exporters(store: Store, server: BrokerServer, clock: Clock, events: EventBus) -> AsyncIterator[Exporters]:
    exporters = Exporters(store, server, clock, events)
    yield exporters
    for exporter in exporters.made:
        await exporter.on_stop()


async def ended(store: Store, clock: FakeClock, count: int) -> list[str]:
    """Subjects of runs that ended one after the other."""
    runs = []
    for _ in range(count):
        runs.append(str(await finish(store)))
        await clock.advance(0.1)
    return runs


async def drain(exporter: EventExporter, clock: FakeClock) -> None:
    """Exports until nothing is left."""
    await clock.advance(0.1)
    store = exporter._store

    async def is_done() -> bool:
        await exporter.run_once()
        place = await store.exports.take_export("events", exporter._owner, LEASE_SECONDS, clock.now())
        return place is not None and place[0] >= clock.now()

    await until(is_done)


def in_order(topics: TopicReader, subjects: list[str]) -> list[str]:
    """Sorted for a broker that keeps no order of different runs. Their ids are in the order in which they began."""
    return subjects if topics.keeps_order else sorted(subjects)


async def test_the_end_of_a_run_becomes_a_cloud_event(
    store: Store, exporters: Exporters, topics: TopicReader, fake_clock: FakeClock
) -> None:
    exporter = exporters.make()
    await exporter.on_start()
    await exporter.run_once()
    run_id = await finish(store, name="invoice 7", queue="shop/mail", task="shop/send", options='{"tags": ["mail"]}')
    await drain(exporter, fake_clock)
    (event,) = await topics.events(TOPIC)
    data = event.pop("data")
    assert event.pop("time") == data["finished_at"]
    assert event == {
        "specversion": "1.0",
        "id": f"{run_id}:end",
        "source": "/foliot/shop",
        "type": "foliot.run.succeeded",
        "subject": str(run_id),
        "datacontenttype": "application/json",
    }
    assert (data["run_id"], data["task"], data["queue"], data["name"]) == (str(run_id), "send", "mail", "invoice 7")
    assert (data["outcome"], data["attempt"], data["tags"], data["error"]) == ("succeeded", 1, ["mail"], None)
    assert await topics.events(DEAD) == []


async def test_a_run_that_failed_for_good_is_a_dead_letter_too(
    store: Store, exporters: Exporters, topics: TopicReader, fake_clock: FakeClock
) -> None:
    exporter = exporters.make()
    await exporter.run_once()
    run_id = await finish(store, RunState.FAILED, error="no such customer")
    await drain(exporter, fake_clock)
    (event,), (dead,) = await topics.events(TOPIC), await topics.events(DEAD)
    assert (event["type"], dead["type"]) == ("foliot.run.failed", "foliot.run.dead")
    assert event["id"] != dead["id"]
    fields = {name: dead["data"][name] for name in ("job_id", "failure_reason", "retry_count", "timestamp")}
    assert fields == {
        "job_id": str(run_id),
        "failure_reason": "no such customer",
        "retry_count": 0,
        "timestamp": event["data"]["finished_at"],
    }


async def test_a_broker_that_is_killed_or_frozen_in_the_middle_loses_nothing_and_keeps_the_order(
    store: Store,
    exporters: Exporters,
    topics: TopicReader,
    server: BrokerServer,
    fake_clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("foliot.exporters.broker_events.BATCH", 4)
    monkeypatch.setattr(f"foliot.brokers.topics.{server.kind}.SEND_SECONDS", 2.0)
    exporter = exporters.make()
    await exporter.run_once()
    runs = await ended(store, fake_clock, 10)
    await exporter.run_once()
    before = [event["subject"] for event in await topics.events(TOPIC)]
    assert in_order(topics, before) == runs[:4]
    server.freeze()
    try:
        with pytest.raises(TopicUnavailable):
            await exporter.run_once()
    finally:
        server.thaw()
    server.kill()
    with pytest.raises(TopicUnavailable):
        await exporter.run_once()
    runs += await ended(store, fake_clock, 3)
    server.start()
    if not server.keeps_topics:
        await topics.open([TOPIC, DEAD])

    async def is_drained() -> bool:
        try:
            await drain(exporter, fake_clock)
        except TopicUnavailable:
            return False
        return True

    await until(is_drained)
    found = [event["subject"] for event in await topics.events(TOPIC)]
    # Each at least once, and nothing before what came before it.
    assert set(before + found) >= set(runs)
    first_seen = list(dict.fromkeys(before + found))
    assert in_order(topics, first_seen) == runs
    assert max(Counter(found).values()) <= 3


async def test_the_next_node_continues_where_a_dead_one_stopped(
    store: Store, exporters: Exporters, topics: TopicReader, fake_clock: FakeClock
) -> None:
    dead, heir = exporters.make(), exporters.make()
    await dead.run_once()
    runs = await ended(store, fake_clock, 3)
    await drain(dead, fake_clock)
    runs += await ended(store, fake_clock, 2)
    # It sends, and dies before it stores that it has.
    place = await store.exports.take_export("events", dead._owner, LEASE_SECONDS, fake_clock.now())
    assert place is not None
    await dead.export(await dead.list_endings(place, fake_clock.now(), 10))
    await heir.run_once()
    assert in_order(topics, [event["subject"] for event in await topics.events(TOPIC)]) == runs
    await fake_clock.advance(LEASE_SECONDS + 1)
    runs += await ended(store, fake_clock, 1)
    await drain(heir, fake_clock)
    found = await topics.events(TOPIC)
    # JetStream drops by itself what it has already.
    again = [] if topics.server.kind == "nats" else runs[3:5]
    assert in_order(topics, [event["subject"] for event in found]) == in_order(topics, [*runs[:5], *again, runs[5]])
    assert len({event["id"] for event in found}) == 6


async def test_wrong_credentials_refuse_the_start_of_a_scheduler(
    server: BrokerServer, database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    config = Config(events_url=server.wrong_url, database_url=database_url)
    with pytest.raises(ConfigurationError, match=r"^events_url: ") as refused:
        await run_scheduler(config, Stop.new())
    shown = refused.value.detail + "".join(capfd.readouterr())
    assert SECRET not in shown
    assert "swordfish" not in shown
    assert "\n" not in refused.value.detail


async def test_a_topic_that_can_not_be_used_refuses_the_start(server: BrokerServer) -> None:
    if server.kind == "redis":
        from redis import Redis

        with Redis.from_url(server.url) as client:
            client.set("missing", "a text")
    elif server.kind == "rabbitmq":
        import aio_pika

        async with await aio_pika.connect(server.url) as connection:
            channel = await connection.channel()
            await channel.declare_exchange("missing", aio_pika.ExchangeType.FANOUT)
    sender = sender_of("events_url", server.url)
    try:
        with pytest.raises(ConfigurationError, match=r"^events_url: .*missing") as refused:
            await sender.check(["missing"])
    finally:
        await sender.close()
    assert "\n" not in refused.value.detail


async def test_a_node_starts_although_the_broker_is_away(
    store: Store, server: BrokerServer, exporters: Exporters
) -> None:
    exporter = exporters.make(events_url=server.url.replace(str(server.port), "9"))
    await exporter.on_start()
    assert await store.exports.list_lags() == {}
    await exporter.run_once()
    assert set(await store.exports.list_lags()) == {"events"}


async def test_retries_and_skipped_ticks_become_events_in_order(
    store: Store, exporters: Exporters, topics: TopicReader, fake_clock: FakeClock
) -> None:
    exporter = exporters.make()
    await exporter.run_once()
    run_id = await insert(store)
    (first,) = await claim(store)
    error = msgspec.json.encode(error_of("ValueError", "try again", "Traceback")).decode()
    await store.outcomes.retry_runs(WORKER, [Outcome(run_id, first.token, RunState.SCHEDULED, "error", error=error)])
    await fake_clock.advance(0.1)
    await store.runs.move_runs([run_id], RunState.READY)
    (second,) = await claim(store)
    await store.outcomes.finish_runs(WORKER, [Outcome(run_id, second.token, RunState.SUCCEEDED)])
    await fake_clock.advance(0.1)
    job = (await make_job(store, name="nightly", cron="0 4 * * *")).id
    tick_at = fake_clock.now()
    note = "insert into foliot.ticks (job_id, tick_at, noted_at, reason) values ($1, $2, $2, 'overlap')"
    await store.database.execute(Query("note", note), job, tick_at)
    await drain(exporter, fake_clock)
    found = {one["type"]: one for one in await topics.events(TOPIC)}
    kinds = ["foliot.attempt.failed", "foliot.run.succeeded", "foliot.tick.skipped"]
    assert (list(found) if topics.keeps_order else sorted(found)) == kinds
    attempt, end, tick = (found[kind] for kind in kinds)
    assert attempt["data"]["error"] == {"kind": "ValueError", "message": "try again"}
    assert (attempt["subject"], end["subject"], tick["subject"]) == (str(run_id), str(run_id), str(job))
    assert (attempt["data"]["attempt"], end["data"]["attempt"]) == (1, 2)
    assert (attempt["data"]["task"], tick["data"]["name"], tick["data"]["reason"]) == (
        "send_invoice",
        "nightly",
        "overlap",
    )
    assert await topics.events(DEAD) == []
