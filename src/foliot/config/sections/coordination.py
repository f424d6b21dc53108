"""Settings of the coordination of scheduler nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from foliot.config.sections.brokers import BrokerName, BrokersSettings


class CoordinationSettings(BrokersSettings, frozen=True, kw_only=True):
    coordination: Annotated[
        Literal["postgres", "etcd", "zookeeper"],
        Meta(description="The system that knows which scheduler nodes are alive. See coordination.md."),
    ] = "postgres"
    coordination_url: Annotated[
        str,
        Meta(
            description="URL of etcd or ZooKeeper, with one host or several, such as "
            "`http://user:password@one:2379,two:2379` or `zookeeper://one:2181,two:2181`."
        ),
    ] = ""
    coordination_url_file: Annotated[str, Meta(description="File that contains `coordination_url`.")] = ""
    coordination_prefix: Annotated[
        BrokerName,
        Meta(description="Begins all names in etcd or ZooKeeper. Installations that share one need different ones."),
    ] = "foliot"
    coordination_session_seconds: Annotated[
        float,
        Meta(
            ge=2,
            le=60,
            description="Time without a sign of life after which etcd or ZooKeeper counts a scheduler node as dead.",
        ),
    ] = 5
    worker_liveness: Annotated[
        Literal["postgres", "coordinator"],
        Meta(
            description="Where workers show that they are alive: in PostgreSQL, or in the etcd or ZooKeeper of "
            "`coordination`. See coordination.md."
        ),
    ] = "postgres"
