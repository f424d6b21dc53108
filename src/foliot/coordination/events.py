"""Events of coordinators."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.events import Event


@dataclass(frozen=True, slots=True)
class CoordinatorLost(Event):
    """etcd or ZooKeeper does not answer, or the session of this process ended. The leases in PostgreSQL decide."""

    coordinator: str
    why: str


@dataclass(frozen=True, slots=True)
class CoordinatorJoined(Event):
    """This scheduler node or worker is a member."""

    coordinator: str


@dataclass(frozen=True, slots=True)
class MembersGone(Event):
    """The sessions of other scheduler nodes have ended. Their shards are free."""

    count: int


@dataclass(frozen=True, slots=True)
class WorkersGone(Event):
    """The sessions of workers have ended. Their leases have ended, too."""

    count: int
