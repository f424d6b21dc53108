"""Amazon SQS: four queues for each queue of Foliot, one for each level of priority.

SQS holds any number of messages, so the publisher asks how many there are before it adds more. Hints die after a
minute. A worker asks each of the four queues by long polls of one second, for at most ten hints, and deletes a hint
when it arrives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

from botocore.exceptions import BotoCoreError, ClientError

from foliot.brokers.base import ANSWER_SECONDS, HINTS_MAX, KEPT_SECONDS, Broker, BrokerUnavailable, ids_of
from foliot.brokers.levels import Buffer, by_level, safe_name
from foliot.brokers.own_thread import OwnThread
from foliot.brokers.topics.sqs import ABSENT, BATCH, Connection, check_refusal, code_of
from foliot.model.priority import LEVELS
from foliot.model.run import StartableRun
from foliot.service import own_task

NAME_MAX = 80
"""The most characters of a name at SQS."""
SENDERS = 4
POLL_SECONDS = 1
ATTRIBUTES = {"MessageRetentionPeriod": str(KEPT_SECONDS)}


class SqsBroker(Broker):
    name = "sqs"

    def __init__(self, url: str, *, prefix: str) -> None:
        self._account = Account(url, prefix)
        self._senders = [OwnThread(f"sqs sender {number}") for number in range(SENDERS)]
        self._room: dict[str, int] = {}
        """By queue of SQS: how many hints may be added before its size is looked up again."""
        self._pullers: dict[str, Puller] = {}

    async def connect(self) -> None:
        async with self._answering():
            await self._senders[0].call(lambda: self._account.url_of("default", "normal"))

    async def publish(self, queue: str, runs: Sequence[StartableRun]) -> None:
        async with self._answering():
            for level, some in by_level(runs).items():
                url = await self._senders[0].call(partial(self._account.url_of, queue, level))
                if self._room.get(url, 0) < len(some):
                    size = await self._senders[0].call(partial(self._account.size, url))
                    self._room[url] = max(0, HINTS_MAX - size)
                added = some[: self._room[url]]
                self._room[url] -= len(added)
                batches = [added[first : first + BATCH] for first in range(0, len(added), BATCH)]
                calls = [
                    sender.call(partial(self._account.send, url, batches[number::SENDERS]))
                    for number, sender in enumerate(self._senders[: len(batches)])
                ]
                # Nothing is under way any more when the caller hears of a failure.
                for failed in await asyncio.gather(*calls, return_exceptions=True):
                    if isinstance(failed, BaseException):
                        raise failed

    async def receive(self, queue: str, limit: int, wait_seconds: float) -> list[UUID]:
        puller = self._pullers.get(queue)
        if puller is None:
            self._pullers[queue] = puller = Puller(self._account, queue)
        async with self._answering():
            return await puller.receive(limit, wait_seconds)

    async def close(self) -> None:
        """Long polls that are under way end by themselves."""
        for puller in self._pullers.values():
            await puller.close()
        self._pullers.clear()
        for sender in self._senders:
            sender.end()

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError, OSError) as error:
            check_refusal("dispatch_url", error, "create, send to and receive from queues")
            if not isinstance(error, ClientError):
                raise BrokerUnavailable(f"SQS: {type(error).__name__}") from error
            if code_of(error) in ABSENT:
                # Somebody has deleted queues. They are made again when they are used next.
                self._account.forget()
                self._room.clear()
            raise BrokerUnavailable(f"SQS: {code_of(error)}") from error


class Account:
    """The queues of one installation. Its methods block, and any thread may call them."""

    def __init__(self, url: str, prefix: str) -> None:
        self._connection = Connection(
            "dispatch_url", url, connect_seconds=ANSWER_SECONDS, answer_seconds=POLL_SECONDS + ANSWER_SECONDS
        )
        self._prefix = prefix
        self._urls: dict[str, str] = {}

    @property
    def _client(self) -> Any:
        return self._connection.client

    def url_of(self, queue: str, level: str) -> str:
        """The address of a queue, which is created if need be."""
        begin, end = f"{self._prefix}-ready-", f"-{level}"
        name = begin + safe_name(queue, NAME_MAX - len(begin) - len("-critical")) + end
        if name not in self._urls:
            try:
                found = self._client.get_queue_url(QueueName=name)
            except ClientError as error:
                if code_of(error) not in ABSENT:
                    raise
                found = self._client.create_queue(QueueName=name, Attributes=ATTRIBUTES)
            self._urls[name] = found["QueueUrl"]
        return self._urls[name]

    def forget(self) -> None:
        self._urls.clear()

    def size(self, url: str) -> int:
        asked = "ApproximateNumberOfMessages"
        return int(self._client.get_queue_attributes(QueueUrl=url, AttributeNames=[asked])["Attributes"][asked])

    def send(self, url: str, batches: Sequence[Sequence[StartableRun]]) -> None:
        for batch in batches:
            entries = [{"Id": str(place), "MessageBody": str(run.id)} for place, run in enumerate(batch)]
            self._client.send_message_batch(QueueUrl=url, Entries=entries)

    def pull(self, queue: str, level: str, limit: int) -> list[UUID]:
        url = self.url_of(queue, level)
        answer = self._client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=min(limit, BATCH), WaitTimeSeconds=POLL_SECONDS
        )
        messages = answer.get("Messages", [])
        if messages:
            entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(messages)]
            self._client.delete_message_batch(QueueUrl=url, Entries=entries)
        return ids_of(message["Body"] for message in messages)


class Puller:
    """Pulls the hints of one queue. Each level has one poll under way while hints are requested."""

    def __init__(self, account: Account, queue: str) -> None:
        self._account = account
        self._queue = queue
        self._buffer = Buffer()
        self._threads = {level: OwnThread(f"sqs {queue} {level}") for level in LEVELS}
        self._under_way: dict[str, asyncio.Task[list[UUID]]] = {}

    async def receive(self, limit: int, wait_seconds: float) -> list[UUID]:
        if not self._buffer:
            for level in LEVELS:
                if level not in self._under_way:
                    self._under_way[level] = own_task(self._pull(level, limit), name=f"pull {level}")
            await asyncio.wait(self._under_way.values(), timeout=wait_seconds, return_when=asyncio.FIRST_COMPLETED)
            self._collect()
        return self._buffer.take(limit)

    async def close(self) -> None:
        for task in self._under_way.values():
            task.cancel()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        for thread in self._threads.values():
            thread.end()

    async def _pull(self, level: str, limit: int) -> list[UUID]:
        return await self._threads[level].call(lambda: self._account.pull(self._queue, level, limit))

    def _collect(self) -> None:
        ended = {level: task for level, task in self._under_way.items() if task.done()}
        for level in ended:
            del self._under_way[level]
        failed = [error for task in ended.values() if (error := task.exception()) is not None]
        for level, task in ended.items():
            if task.exception() is None:
                self._buffer.add(level, task.result())
        if failed:
            raise failed[0]
