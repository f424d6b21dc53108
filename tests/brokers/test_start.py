"""A process with a broker that can't be used does not start, and says what to do."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from foliot.assembly import Stop, run_scheduler
from foliot.brokers.choice import broker_of
from foliot.brokers.topics.choice import receiver_of, sender_of
from foliot.config import Config
from foliot.config.urls import BROKER_SCHEMES
from foliot.errors import ConfigurationError
from foliot.sdk.app import App
from foliot.worker_assembly import Work, run_worker
from tests.support.brokers.kafka import KafkaServer
from tests.support.brokers.server import SECRET, BrokerServer

PACKAGES = [
    ("redis", "redis"), ("rabbitmq", "aio_pika"), ("nats", "nats"), ("kafka", "confluent_kafka"), ("sqs", "boto3"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "package"), PACKAGES)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, kind: Any, package: str
) -> None:
    for module in (package, *(one for one in sys.modules if one.startswith(f"{package}."))):
        monkeypatch.setitem(sys.modules, module, None)
    for module in ("foliot.brokers", "foliot.brokers.topics"):
        monkeypatch.delitem(sys.modules, f"{module}.{kind}", raising=False)
    with pytest.raises(ConfigurationError, match=rf"^dispatch: {kind} needs .*{package}.*'foliot\[{kind}\]'$"):
        broker_of(Config(dispatch=kind, dispatch_url=f"{BROKER_SCHEMES[kind][0]}://127.0.0.1"))


async def test_a_worker_and_a_scheduler_do_not_start_with_a_wrong_password(
    server: BrokerServer, database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    config = server.config(dispatch_url=server.wrong_url, database_url=database_url)
    with pytest.raises(ConfigurationError, match=r"^dispatch_url: "):
        await run_scheduler(config, Stop.new())
    with pytest.raises(ConfigurationError, match=r"^dispatch_url: "):
        await run_worker(config, Stop.new(), Work(App(), {"default": 1}))
    shown = "".join(capfd.readouterr())
    assert SECRET not in shown
    assert "swordfish" not in shown


@pytest.mark.parametrize("running_server", [pytest.param("kafka", marks=pytest.mark.deploy)], indirect=True)
async def test_a_user_who_may_not_create_topics_is_refused(server: BrokerServer) -> None:
    assert isinstance(server, KafkaServer)
    broker = server.broker(dispatch_url=server.guest_url, dispatch_prefix="guest")
    try:
        with pytest.raises(
            ConfigurationError, match=r"^dispatch_url: Kafka refuses to create the topic guest\.ready\."
        ) as no:
            await broker.connect()
    finally:
        await broker.close()
    assert "\n" not in no.value.detail
    assert SECRET not in no.value.detail


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sqs://", "it has no region"),
        ("sqs://key:swordfish@eu-central-1?visibility=5", "SQS has no option 'visibility'"),
        ("sqs://key:swordfish@eu-central-1?endpoint=nowhere", "Invalid endpoint"),
        ("sqs://key:swordfish@eu_central_1!", "region"),
    ],
)
async def test_a_url_of_sqs_that_can_not_be_used_is_refused(url: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^dispatch_url: .*{why}") as refused:
        await broker_of(Config(dispatch="sqs", dispatch_url=url)).connect()
    assert "swordfish" not in refused.value.detail


@pytest.mark.parametrize(("kind", "package"), PACKAGES)
def test_a_package_that_is_missing_for_events_or_a_source_is_named_too(
    monkeypatch: pytest.MonkeyPatch, kind: str, package: str
) -> None:
    for module in (package, *(one for one in sys.modules if one.startswith(f"{package}."))):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"foliot.brokers.topics.{kind}", raising=False)
    url = f"{BROKER_SCHEMES[kind][0]}://user:swordfish@127.0.0.1"
    with pytest.raises(ConfigurationError, match=rf"^events_url: {kind} needs .*'foliot\[{kind}\]'$"):
        sender_of("events_url", url)
    with pytest.raises(ConfigurationError, match=rf"^kind: {kind} needs .*'foliot\[{kind}\]'$"):
        receiver_of(kind, url, topic="orders", group="foliot-orders")


@pytest.mark.process
def test_processes_without_a_broker_load_no_library_of_one() -> None:
    modules = ("foliot.assembly", "foliot.worker_assembly", "foliot.scheduler.node", "foliot.worker.node")
    packages = [package for _, package in PACKAGES]
    program = (
        f"import sys\nfor name in {modules!r}: __import__(name)\n"
        f"print([name for name in {packages!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
