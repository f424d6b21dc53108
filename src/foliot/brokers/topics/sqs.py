"""Amazon SQS: a topic is a queue.

Only a FIFO queue keeps an order: there the messages of a run are one group. The client waits for each answer, so it is
called in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit
from zlib import crc32

import boto3
import botocore.config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
)

from foliot.brokers.own_thread import OwnThread
from foliot.brokers.topics.base import (
    CONNECT_SECONDS,
    SEND_SECONDS,
    Message,
    Received,
    Receiver,
    Sender,
    TopicUnavailable,
)
from foliot.errors import ConfigurationError

T = TypeVar("T")
BATCH = 10
"""The most messages of a request."""
BATCH_BYTES = 256 * 1024
SENDERS = 4
HIDDEN_SECONDS = 60
"""A message that was not deleted comes again after this time."""
FIFO = ".fifo"
ABSENT = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
REFUSALS = (
    # An answer without a code has the status of HTTP for one.
    "401", "403", "AccessDenied", "AccessDeniedException", "AuthFailure", "ExpiredToken", "IncompleteSignature",
    "InvalidAccessKeyId", "InvalidClientTokenId", "MissingAuthenticationToken", "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)  # fmt: skip


class Connection:
    """A client, made when it is first used. Any thread may use it."""

    def __init__(self, setting: str, url: str, *, connect_seconds: float, answer_seconds: float) -> None:
        self._setting = setting
        self._parts = urlsplit(url)
        self._times = {"connect_timeout": connect_seconds, "read_timeout": answer_seconds}
        self._made: Any = None
        self._making = Lock()
        options = parse_qs(self._parts.query)
        self._endpoint = options.pop("endpoint", [None])[0]
        if options:
            raise ConfigurationError(f"{setting}: SQS has no option {min(options)!r}, only endpoint")
        if not self._parts.hostname:
            raise ConfigurationError(f"{setting}: it has no region; write sqs://<access key>:<secret>@<region>")

    @property
    def client(self) -> Any:
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _make(self) -> Any:
        try:
            return boto3.session.Session().client(
                "sqs",
                region_name=self._parts.hostname,
                endpoint_url=self._endpoint,
                aws_access_key_id=unquote(self._parts.username or "") or None,
                aws_secret_access_key=unquote(self._parts.password or "") or None,
                config=botocore.config.Config(**self._times, retries={"max_attempts": 0}, max_pool_connections=100),
            )
        except ValueError as error:
            raise ConfigurationError(f"{self._setting}: SQS: {error}") from None


def check_refusal(setting: str, error: Exception, needed: str) -> None:
    """Raises `ConfigurationError` if SQS refuses this client. `needed` are the rights that it must have."""
    if isinstance(error, ClientError) and (code := code_of(error)) in REFUSALS:
        raise ConfigurationError(
            f"{setting}: SQS refuses the credentials ({code}); check the access key, the secret and its right to "
            f"{needed}"
        ) from None
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError):
        raise ConfigurationError(
            f"{setting}: there are no AWS credentials; write sqs://<access key>:<secret>@<region>, or give this "
            "machine a role"
        ) from None


def code_of(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])


class Queues:
    """The queues of one account, by their names. Its methods block."""

    def __init__(self, setting: str, field: str, url: str, *, needed: str) -> None:
        """`field` names the queue in errors."""
        self._setting = setting
        self._field = field
        self._needed = needed
        self._connection = Connection(setting, url, connect_seconds=CONNECT_SECONDS, answer_seconds=SEND_SECONDS)
        self._urls: dict[str, str] = {}

    @property
    def client(self) -> Any:
        return self._connection.client

    async def call(self, thread: OwnThread, work: Callable[[], T]) -> T:
        try:
            return await thread.call(work)
        except (BotoCoreError, ClientError, OSError) as error:
            check_refusal(self._setting, error, self._needed)
            why = code_of(error) if isinstance(error, ClientError) else type(error).__name__
            self._urls.clear()
            raise TopicUnavailable(f"SQS: {why}") from None

    def url_of(self, name: str) -> str:
        if name not in self._urls:
            try:
                self._urls[name] = self.client.get_queue_url(QueueName=name)["QueueUrl"]
            except (ClientError, ParamValidationError) as error:
                if isinstance(error, ClientError) and code_of(error) not in ABSENT:
                    raise
                raise ConfigurationError(
                    f"{self._field}: SQS has no queue {name!r} in this region; create it: aws sqs create-queue "
                    f"--queue-name {name}"
                ) from None
        return self._urls[name]


class SqsSender(Sender):
    name = "sqs"

    def __init__(self, setting: str, url: str) -> None:
        self._queues = Queues(setting, setting, url, needed="find the queue and send to it")
        self._threads = [OwnThread(f"sqs events {number}") for number in range(SENDERS)]

    async def check(self, topics: Sequence[str]) -> None:
        for topic in topics:
            await self._queues.call(self._threads[0], partial(self._queues.url_of, topic))

    async def send(self, messages: Sequence[Message]) -> None:
        # The messages of a group stay in one lane, and so in order.
        lanes: list[list[Message]] = [[] for _ in range(SENDERS)]
        for message in messages:
            lanes[crc32(message.group.encode()) % SENDERS].append(message)
        calls = [
            self._queues.call(thread, partial(self._send, lane))
            for thread, lane in zip(self._threads, lanes, strict=True)
            if lane
        ]
        # All lanes end before the caller sends anything again.
        for failed in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(failed, BaseException):
                raise failed

    async def close(self) -> None:
        """The threads end once they have no call under way."""
        for thread in self._threads:
            thread.end()

    def _send(self, messages: Sequence[Message]) -> None:
        for topic, same in groupby(sorted(messages, key=lambda message: message.topic), lambda message: message.topic):
            url, is_fifo = self._queues.url_of(topic), topic.endswith(FIFO)
            for batch in batches_of(list(same), is_fifo=is_fifo):
                entries = [_entry(str(place), message, is_fifo=is_fifo) for place, message in enumerate(batch)]
                answer = self._queues.client.send_message_batch(QueueUrl=url, Entries=entries)
                if failed := answer.get("Failed"):
                    raise TopicUnavailable(f"SQS has not taken {len(failed)} messages: {failed[0].get('Code')}")


def batches_of(messages: Sequence[Message], *, is_fifo: bool) -> Iterator[list[Message]]:
    """A batch may fail in part. So in a FIFO queue no batch has two messages of a group: the second one might arrive
    without the first."""
    batch: list[Message] = []
    for message in messages:
        is_full = len(batch) == BATCH or sum(len(one.body) for one in batch) + len(message.body) > BATCH_BYTES
        if batch and (is_full or (is_fifo and any(one.group == message.group for one in batch))):
            yield batch
            batch = []
        batch.append(message)
    if batch:
        yield batch


def _entry(place: str, message: Message, *, is_fifo: bool) -> dict[str, str]:
    entry = {"Id": place, "MessageBody": message.body.decode()}
    if is_fifo:
        # SQS drops what it has got already within five minutes.
        entry |= {"MessageGroupId": message.group, "MessageDeduplicationId": message.id}
    return entry


class SqsReceiver(Receiver):
    """Messages stay in the queue, hidden, until they are deleted."""

    name = "sqs"

    def __init__(self, url: str, *, topic: str, group: str) -> None:
        self._topic = topic
        self._queues = Queues("url", "topic", url, needed="find the queue, receive from it and delete messages")
        self._thread = OwnThread(f"sqs {group}")

    async def receive(self, limit: int, wait_seconds: float) -> list[Received]:
        return await self._queues.call(self._thread, lambda: self._receive(limit, wait_seconds))

    async def acknowledge(self, messages: Sequence[Received]) -> None:
        await self._queues.call(self._thread, lambda: self._delete(messages))

    async def close(self) -> None:
        self._thread.end()

    def _receive(self, limit: int, wait_seconds: float) -> list[Received]:
        # SQS waits for whole seconds only.
        found = self._pull(min(limit, BATCH), max(1, round(wait_seconds)))
        last = found
        while len(last) == BATCH and len(found) < limit:
            last = self._pull(min(limit - len(found), BATCH), 0)
            found += last
        return found

    def _pull(self, limit: int, wait_seconds: int) -> list[Received]:
        answer = self._queues.client.receive_message(
            QueueUrl=self._queues.url_of(self._topic),
            MaxNumberOfMessages=limit,
            WaitTimeSeconds=wait_seconds,
            VisibilityTimeout=HIDDEN_SECONDS,
            MessageAttributeNames=["All"],
        )
        return [_received(message) for message in answer.get("Messages", [])]

    def _delete(self, messages: Sequence[Received]) -> None:
        url = self._queues.url_of(self._topic)
        for first in range(0, len(messages), BATCH):
            entries = [
                {"Id": str(place), "ReceiptHandle": message.receipt}
                for place, message in enumerate(messages[first : first + BATCH])
            ]
            # A message that is not deleted comes again, and changes nothing.
            self._queues.client.delete_message_batch(QueueUrl=url, Entries=entries)


def _received(message: dict[str, Any]) -> Received:
    headers = {name: str(value.get("StringValue", "")) for name, value in message.get("MessageAttributes", {}).items()}
    return Received(message["MessageId"], message["Body"].encode(), headers, message["ReceiptHandle"])
