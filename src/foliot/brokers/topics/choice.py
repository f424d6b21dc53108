"""Chooses the broker by the scheme of its URL. Its library is loaded here, and only then."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from foliot.brokers.choice import missing_extra
from foliot.brokers.topics.base import Receiver, Sender
from foliot.config import broker_kind_of
from foliot.errors import ConfigurationError

CLASSES = {
    "redis": "Redis",
    "rabbitmq": "Rabbitmq",
    "nats": "Nats",
    "kafka": "Kafka",
    "sqs": "Sqs",
}
"""How the names of the classes begin."""


def sender_of(setting: str, url: str) -> Sender:
    """`setting` names the URL in errors, which never quote it."""
    sender: type[Sender] = _class_of(setting, broker_kind_of(url), "Sender")
    return sender(setting, url)  # type: ignore[call-arg]


def receiver_of(kind: str, url: str, *, topic: str, group: str) -> Receiver:
    """`group` is the name under which the broker knows what was acknowledged."""
    if broker_kind_of(url) != kind:
        raise ConfigurationError(f"url: it is not one of {kind}")
    receiver: type[Receiver] = _class_of("kind", kind, "Receiver")
    return receiver(url, topic=topic, group=group)  # type: ignore[call-arg]


def _class_of(setting: str, kind: str | None, part: str) -> Any:
    if kind not in CLASSES:
        raise ConfigurationError(f"{setting}: no broker has URLs like this one")
    try:
        module = import_module(f"foliot.brokers.topics.{kind}")
    except ModuleNotFoundError as error:
        raise ConfigurationError(missing_extra(setting, kind, error)) from None
    return getattr(module, f"{CLASSES[kind]}{part}")
