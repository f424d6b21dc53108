"""Chooses the broker that the configuration names. Its library is loaded here, and only then."""

from __future__ import annotations

from importlib import import_module

from foliot.brokers.base import Broker
from foliot.config import Config
from foliot.errors import ConfigurationError

ADAPTERS = {
    "redis": "RedisBroker",
    "rabbitmq": "RabbitmqBroker",
    "nats": "NatsBroker",
    "kafka": "KafkaBroker",
    "sqs": "SqsBroker",
}


def broker_of(config: Config) -> Broker:
    """The broker that carries hints, for any `dispatch` but postgres."""
    try:
        module = import_module(f"foliot.brokers.{config.dispatch}")
    except ModuleNotFoundError as error:
        raise ConfigurationError(missing_extra("dispatch", config.dispatch, error)) from None
    adapter: type[Broker] = getattr(module, ADAPTERS[config.dispatch])
    return adapter(config.dispatch_url, prefix=config.dispatch_prefix)  # type: ignore[call-arg]


def missing_extra(setting: str, kind: str, error: ModuleNotFoundError) -> str:
    return (
        f"{setting}: {kind} needs the Python package {error.name or kind}; "
        f"install it with: pip install 'foliot[{kind}]'"
    )
