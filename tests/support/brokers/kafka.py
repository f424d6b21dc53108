"""A real Kafka without ZooKeeper. Maven downloads its jars once, into a cache in the home directory."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import confluent_kafka.admin
import pytest
from confluent_kafka import OFFSET_END, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from foliot.brokers.levels import safe_name
from foliot.brokers.topics.kafka import Client
from tests.support.brokers.server import SECRET, BrokerServer
from tests.support.debian import require
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_SECONDS

READY = "foliot.ready."
VERSION = "4.1.1"
CACHE = Path.home() / ".cache" / "foliot-tests" / "kafka"
POM = f"""
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>kafka</artifactId><version>1</version>
<dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
"""
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="foliot" password="{SECRET}" user_foliot="{SECRET}" user_guest="{SECRET}";'
)


def jars() -> str:
    """The class path. Skips the test without Java, Maven or a network."""
    java, maven = require("java", "default-jre-headless"), require("mvn", "maven")
    assert java
    place = CACHE / VERSION
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            (place / "pom.xml").write_text(POM)
            done = subprocess.run(
                [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={place / 'libs'}"],
                cwd=place, check=False, capture_output=True, timeout=280,
            )  # fmt: skip
            if done.returncode != 0:
                pytest.skip("Maven can't download org.apache.kafka:kafka_2.13")
            (place / "done").touch()
    return f"{place / 'libs'}/*"


class KafkaServer(BrokerServer):
    kind = "kafka"
    keeps_order = False
    names_its_address = True
    advertised_port = 0
    """0: the port on which it listens."""

    @property
    def url(self) -> str:
        return f"kafka://foliot:{SECRET}@127.0.0.1:{self.port}"

    @property
    def guest_url(self) -> str:
        """The URL of a user without any right."""
        return self.url.replace("foliot:", "guest:")

    def command(self) -> list[str]:
        self._java = [require("java", "default-jre-headless"), "-Xmx256m", "-XX:+UseSerialGC", "-cp", jars()]
        settings = self.directory / "server.properties"
        if not settings.exists():
            settings.write_text(self._settings())
            subprocess.run(
                [*self._java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", str(settings)],
                check=True, capture_output=True, timeout=60, cwd=self.directory,
            )  # fmt: skip
        return [*self._java, "kafka.Kafka", str(settings)]

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    async def wipe(self) -> None:
        """Empties the topics of queues. Readers delete their topics."""
        await asyncio.to_thread(self._wipe)

    async def delete(self) -> None:
        await asyncio.to_thread(self._delete)

    async def count(self, queue: str) -> int:
        return await asyncio.to_thread(self._count, queue)

    async def forge(self, queue: str, messages: list[bytes]) -> None:
        await asyncio.to_thread(self._forge, f"{READY}{safe_name(queue)}.normal", messages)

    def _wipe(self) -> None:
        admin, give_up_at = AdminClient(self._client), time.monotonic() + PATIENCE_SECONDS
        while places := self._places(admin, READY):
            try:
                for done in admin.delete_records([TopicPartition(*place, OFFSET_END) for place in places]).values():
                    done.result(30)
            except KafkaException:
                # After a start, partitions have no leader for a moment.
                assert time.monotonic() < give_up_at
                time.sleep(0.2)
            else:
                return

    def _delete(self) -> None:
        admin = AdminClient(self._client)
        if topics := {topic for topic, _ in self._places(admin, READY)}:
            for done in admin.delete_topics(sorted(topics)).values():
                # Some may be gone since the last time.
                with suppress(KafkaException):
                    done.result(30)

    def _count(self, queue: str) -> int:
        # Their types promise less than they have.
        admin, when = AdminClient(self._client), cast(Any, confluent_kafka.admin).OffsetSpec
        places = self._places(admin, f"{READY}{safe_name(queue)}.")
        begin, end = (
            sum(
                done.result(30).offset
                for done in admin.list_offsets({TopicPartition(*place): spec for place in places}).values()
            )
            for spec in (when.earliest(), when.latest())
        )
        return int(end - begin)

    def _forge(self, topic: str, messages: list[bytes]) -> None:
        (made,) = AdminClient(self._client).create_topics([NewTopic(topic, 8)]).values()
        with suppress(KafkaException):
            made.result(30)
        producer = Producer(self._client)
        for message in messages:
            producer.produce(topic, message)
        assert producer.flush(30) == 0

    def _places(self, admin: AdminClient, begin: str) -> list[tuple[str, int]]:
        topics = admin.list_topics(timeout=30).topics
        return [(name, number) for name, one in topics.items() if name.startswith(begin) for number in one.partitions]

    @property
    def _client(self) -> dict[str, Any]:
        return Client("url", self.url).settings

    def _settings(self) -> str:
        controller = free_port()
        return "\n".join([
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{controller}",
            f"listeners=SASL_PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            f"advertised.listeners=SASL_PLAINTEXT://127.0.0.1:{self.advertised_port or self.port}",
            "controller.listener.names=CONTROLLER",
            "inter.broker.listener.name=SASL_PLAINTEXT",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms=PLAIN",
            "sasl.mechanism.inter.broker.protocol=PLAIN",
            f"listener.name.sasl_plaintext.plain.sasl.jaas.config={LOGIN}",
            f"log.dirs={self.directory / 'data'}",
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "auto.create.topics.enable=false",
            "group.initial.rebalance.delay.ms=0",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:foliot;User:ANONYMOUS",
        ])  # fmt: skip
