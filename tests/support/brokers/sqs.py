"""A real server with the protocol of SQS, which checks signatures and loses everything when it ends."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import boto3
import botocore.config

from foliot.brokers.levels import safe_name
from foliot.model.priority import LEVELS
from tests.support.brokers.server import BrokerServer

READY = "foliot-ready-"
REGION = "eu-central-1"
ALLOWED = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]})


class SqsServer(BrokerServer):
    kind = "sqs"
    keeps_order = False
    keeps_levels = False
    keeps_topics = False
    # Longer than a long poll.
    settle_seconds = 2.0

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._key, self._secret = "", ""

    @property
    def url(self) -> str:
        return self._url(self._secret)

    @property
    def wrong_url(self) -> str:
        return self._url("swordfish")

    def command(self) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]

    def start(self) -> None:
        super().start()
        # The same key after each start.
        self._post("seed?a=42")
        iam = self._client("iam")
        iam.create_user(UserName="foliot")
        iam.put_user_policy(UserName="foliot", PolicyName="all", PolicyDocument=ALLOWED)
        key = iam.create_access_key(UserName="foliot")["AccessKey"]
        self._key, self._secret = key["AccessKeyId"], key["SecretAccessKey"]
        self._post("reset-auth", b"0")

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    async def wipe(self) -> None:
        """Deletes the queues, too."""
        await asyncio.to_thread(self._wipe)

    async def count(self, queue: str) -> int:
        return await asyncio.to_thread(self._count, queue)

    async def forge(self, queue: str, messages: list[bytes]) -> None:
        await asyncio.to_thread(self._forge, queue, messages)

    def _wipe(self) -> None:
        sqs = self._client("sqs")
        for url in sqs.list_queues(QueueNamePrefix=READY).get("QueueUrls", []):
            sqs.delete_queue(QueueUrl=url)

    def _count(self, queue: str) -> int:
        sqs, total = self._client("sqs"), 0
        for level in LEVELS:
            with suppress(sqs.exceptions.QueueDoesNotExist):
                url = sqs.get_queue_url(QueueName=f"{READY}{safe_name(queue)}-{level}")["QueueUrl"]
                answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
                total += int(answer["Attributes"]["ApproximateNumberOfMessages"])
        return total

    def _forge(self, queue: str, messages: list[bytes]) -> None:
        sqs = self._client("sqs")
        url = sqs.create_queue(
            QueueName=f"{READY}{safe_name(queue)}-normal", Attributes={"MessageRetentionPeriod": "60"}
        )["QueueUrl"]
        for message in filter(None, messages):
            sqs.send_message(QueueUrl=url, MessageBody=message.decode(errors="replace"))

    def _url(self, secret: str) -> str:
        key = f"{quote(self._key, safe='')}:{quote(secret, safe='')}"
        return f"sqs://{key}@{REGION}?endpoint=http://127.0.0.1:{self.port}"

    def _client(self, service: str) -> Any:
        return boto3.session.Session().client(
            service, region_name=REGION, endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=self._key or "nobody", aws_secret_access_key=self._secret or "nobody",
            config=botocore.config.Config(read_timeout=30),
        )  # fmt: skip

    def _post(self, path: str, body: bytes = b"") -> None:
        url = f"http://127.0.0.1:{self.port}/moto-api/{path}"
        with urlopen(Request(url, body, {"Content-Type": "text/plain"}, method="POST"), timeout=30):
            pass
