"""FIFO queues keep the order of each run, also where a part of a batch fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from foliot.brokers.topics.base import Message, TopicUnavailable
from foliot.brokers.topics.sqs import BATCH, BATCH_BYTES, SqsSender, batches_of
from tests.support.brokers.server import BrokerServer
from tests.support.brokers.topics import READERS, TopicReader

TOPIC = "events.fifo"
only_sqs = pytest.mark.parametrize("running_server", [pytest.param("sqs", marks=pytest.mark.deploy)], indirect=True)


def message(group: str, number: int, *, size: int = 10) -> Message:
    return Message(TOPIC, f"{group}:{number}", group, "run.succeeded", f"{group}:{number}".ljust(size).encode())


def test_a_batch_of_a_fifo_queue_has_no_two_messages_of_a_run() -> None:
    messages = [message("a", 1), message("b", 1), message("a", 2), message("a", 3), message("b", 2)]
    batches = list(batches_of(messages, is_fifo=True))
    assert [[one.id for one in batch] for batch in batches] == [["a:1", "b:1"], ["a:2"], ["a:3", "b:2"]]
    assert list(batches_of(messages, is_fifo=False)) == [messages]


def test_a_batch_is_no_larger_than_a_request() -> None:
    many = [message("a", number) for number in range(25)]
    assert [len(batch) for batch in batches_of(many, is_fifo=False)] == [BATCH, BATCH, 5]
    large = [message("a", number, size=BATCH_BYTES // 3) for number in range(4)]
    assert [len(batch) for batch in batches_of(large, is_fifo=False)] == [3, 1]


@pytest.fixture
async def reader(server: BrokerServer) -> TopicReader:
    reader = READERS["sqs"](server)
    await reader.open([TOPIC])
    return reader


@pytest.fixture
async def sender(server: BrokerServer) -> AsyncIterator[SqsSender]:
    sender = SqsSender("events_url", server.url)
    yield sender
    await sender.close()


@only_sqs
async def test_events_of_a_run_stay_in_order_and_arrive_once_although_they_are_sent_again(
    reader: TopicReader, sender: SqsSender
) -> None:
    messages = [message(group, number) for number in range(5) for group in "abcdefgh"]
    await sender.send(messages)
    await sender.send(messages)
    found = [body.decode().strip() for body in await reader.read(TOPIC)]
    assert len(found) == len(messages)
    for group in "abcdefgh":
        assert [one for one in found if one.startswith(group)] == [f"{group}:{number}" for number in range(5)]


@only_sqs
async def test_a_message_that_was_refused_holds_back_those_behind_it(
    reader: TopicReader, sender: SqsSender, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqs = sender._queues.client
    send = sqs.send_message_batch

    def fail_in_part(**request: Any) -> Any:
        """SQS refuses the first message and takes the others."""
        first, *rest = request["Entries"]
        answer = send(**request | {"Entries": rest}) if rest else {}
        return answer | {"Failed": [{"Id": first["Id"], "Code": "InternalError", "SenderFault": False}]}

    messages = [message("a", number) for number in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(sqs, "send_message_batch", fail_in_part)
        with pytest.raises(TopicUnavailable, match="InternalError"):
            await sender.send(messages)
    assert await reader.read(TOPIC) == []
    await sender.send(messages)
    assert [body.decode().strip() for body in await reader.read(TOPIC)] == ["a:0", "a:1", "a:2"]
