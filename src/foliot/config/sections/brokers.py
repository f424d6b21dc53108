"""Settings of message brokers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from foliot.config.sections.statsd import StatsdSettings
from foliot.validation_errors import form

BROKER_NAME = form(r"^[A-Za-z0-9_-]+$(?!\n)", "consist of letters, digits and _ -")
BrokerName = Annotated[
    str,
    Meta(min_length=1, max_length=40, pattern=BROKER_NAME),
]


class BrokersSettings(StatsdSettings, frozen=True, kw_only=True):
    dispatch: Annotated[
        Literal["postgres", "redis", "rabbitmq", "nats", "kafka", "sqs"],
        Meta(description="The system that tells workers about ready jobs: PostgreSQL itself, or a message broker."),
    ] = "postgres"
    dispatch_url: Annotated[
        str,
        Meta(description="URL of the message broker, such as `redis://:password@host:6379/0`. See brokers.md."),
    ] = ""
    dispatch_url_file: Annotated[str, Meta(description="File that contains `dispatch_url`.")] = ""
    dispatch_prefix: Annotated[
        BrokerName,
        Meta(description="Begins all names in the message broker. Installations that share one need different ones."),
    ] = "foliot"
