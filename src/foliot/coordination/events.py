"""Events of coordinators."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.events import Event


@dataclass(frozen=True, slots=True)
class CoordinatorLost(Event):
    """etcd or ZooKeeper does not answer, or this node's session ended. The leases in PostgreSQL decide."""

    coordinator: str
    why: str


@dataclass(frozen=True, slots=True)
class CoordinatorJoined(Event):
    """This scheduler node is a member."""

    coordinator: str


@dataclass(frozen=True, slots=True)
class MembersGone(Event):
    """The sessions of other scheduler nodes have ended. Their shards are free."""

    count: int
