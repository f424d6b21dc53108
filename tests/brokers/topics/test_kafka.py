"""Kafka keeps what was received. PostgreSQL says where a source continues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from foliot.brokers.topics.base import Received, TopicUnavailable
from foliot.brokers.topics.kafka import Client, KafkaReceiver
from foliot.errors import ConfigurationError
from tests.support.brokers.kafka import KafkaServer
from tests.support.brokers.server import SECRET, BrokerServer
from tests.support.brokers.topics import KafkaReader
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize(
    "running_server", [pytest.param("kafka", marks=pytest.mark.deploy)], indirect=True, scope="session"
)
TOPIC = "places"
WAIT = 0.2


@pytest.fixture
async def topic(server: BrokerServer) -> KafkaReader:
    reader = KafkaReader(server)
    await reader.open([TOPIC])
    return reader


Open = Callable[[dict[str, int]], KafkaReceiver]


@pytest.fixture
async def open_receiver(server: BrokerServer) -> AsyncIterator[Open]:
    opened: list[KafkaReceiver] = []

    def open_at(places: dict[str, int]) -> KafkaReceiver:
        receiver = KafkaReceiver(server.url, topic=TOPIC, group=f"foliot-{TOPIC}")
        receiver.places = places
        opened.append(receiver)
        return receiver

    yield open_at
    for receiver in opened:
        await receiver.close()


async def receive(receiver: KafkaReceiver, count: int) -> list[Received]:
    """Receives until there are `count` messages, and no more come."""
    found: list[Received] = []

    async def has_enough() -> bool:
        found.extend(await receiver.receive(100, WAIT))
        return len(found) >= count

    await until(has_enough)
    assert len(found) == count
    assert await receiver.receive(100, WAIT) == []
    return found


def bodies(messages: list[Received]) -> list[bytes]:
    return [message.body for message in messages]


async def test_a_source_continues_at_its_place_whatever_the_consumer_group_says(
    topic: KafkaReader, open_receiver: Open
) -> None:
    await topic.feed(TOPIC, [("", b"%d" % number) for number in range(5)])
    first = open_receiver({})
    messages = await receive(first, 5)
    assert bodies(messages) == [b"0", b"1", b"2", b"3", b"4"]
    assert len({message.id for message in messages}) == 5
    assert messages[0].headers == {"origin": "test"}
    # The group claims that all are received, but the jobs of the last two were never stored.
    await first.acknowledge(messages)
    await until(lambda: _is_shown(topic))
    assert messages[2].place is not None
    second = open_receiver(dict([messages[2].place]))
    again = await receive(second, 2)
    assert [message.id for message in again] == [message.id for message in messages[3:]]


async def test_places_outside_of_the_topic_lead_to_its_oldest_message(
    topic: KafkaReader, open_receiver: Open, server: BrokerServer
) -> None:
    await topic.feed(TOPIC, [("", b"%d" % number) for number in range(5)])
    (*_, last) = await receive(open_receiver({}), 5)
    assert last.place is not None
    name, _ = last.place
    # Kafka has lost the messages before this place.
    assert len(await receive(open_receiver({name: 100}), 5)) == 5
    admin = AdminClient(Client("url", server.url).settings)
    for done in admin.delete_records([TopicPartition(TOPIC, 0, 3)]).values():
        await asyncio.to_thread(done.result, 30)
    # The messages after this place have expired.
    assert bodies(await receive(open_receiver({name: 1}), 2)) == [b"3", b"4"]


async def test_a_topic_that_was_made_again_is_read_from_its_beginning(topic: KafkaReader, open_receiver: Open) -> None:
    await topic.feed(TOPIC, [("", b"old %d" % number) for number in range(3)])
    receiver = open_receiver({})
    old = await receive(receiver, 3)
    await topic.open([TOPIC])
    await topic.feed(TOPIC, [("", b"new %d" % number) for number in range(3)])

    async def is_noticed() -> bool:
        try:
            assert await receiver.receive(100, WAIT) == []
        except (TopicUnavailable, ConfigurationError):
            return True
        return False

    await until(is_noticed)
    places = dict(message.place for message in old if message.place is not None)
    new = await receive(open_receiver(places), 3)
    assert bodies(new) == [b"new 0", b"new 1", b"new 2"]
    assert not {message.id for message in old} & {message.id for message in new}


async def test_partitions_that_are_added_are_read_too(
    topic: KafkaReader, open_receiver: Open, server: BrokerServer
) -> None:
    receiver = open_receiver({})
    assert await receiver.receive(100, WAIT) == []
    settings = Client("url", server.url).settings
    admin = AdminClient(settings)
    for done in admin.create_partitions([NewPartitions(TOPIC, 3)]).values():
        await asyncio.to_thread(done.result, 30)
    producer = Producer(settings)

    def send() -> None:
        for partition in range(3):
            producer.produce(TOPIC, b"%d" % partition, partition=partition)
        assert producer.flush(30) == 0

    await until(lambda: _has_partitions(settings, 3))
    await asyncio.to_thread(send)
    assert sorted(bodies(await receive(receiver, 3))) == [b"0", b"1", b"2"]


async def test_a_user_who_may_not_read_is_refused(server: BrokerServer, topic: KafkaReader) -> None:
    assert isinstance(server, KafkaServer)
    receiver = KafkaReceiver(server.guest_url, topic=TOPIC, group="foliot-guest")
    try:
        with pytest.raises(ConfigurationError, match=r"^topic: Kafka does not allow this user to read") as refused:
            await receiver.receive(1, WAIT)
    finally:
        await receiver.close()
    assert SECRET not in refused.value.detail
    assert "\n" not in refused.value.detail


async def _is_shown(topic: KafkaReader) -> bool:
    return await topic.unacknowledged(TOPIC) == 0


async def _has_partitions(settings: dict[str, object], count: int) -> bool:
    consumer = Consumer(settings | {"group.id": "looking"})
    try:
        return len(consumer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions) == count
    finally:
        consumer.close()
