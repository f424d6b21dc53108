"""The interface of coordinators, which tell scheduler nodes which other nodes, and which workers, are alive.

A node is a member while its session lasts: a lease of etcd, or an ephemeral node of ZooKeeper. The number of members
decides how many of the 100 shards each node takes, and the shards of a member whose session ended are free at once.

A coordinator is never the truth. Each takeover raises the epoch of the shard in PostgreSQL, which fences the previous
owner, and the leases in PostgreSQL stay in force beneath. So a coordinator that is away, wrong or wiped only makes
takeovers later, or moves shards for nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from uuid import UUID

ANSWER_SECONDS = 1.0
"""A service that does not answer a request within this time is gone, until it answers again."""


class CoordinatorUnavailable(Exception):
    """The service does not answer. The leases in PostgreSQL decide."""


class SessionLost(Exception):
    """This node is no longer a member, or does not know whether it is."""


class Session(ABC):
    """The membership of this node. Each method raises `SessionLost` soon after the session has ended."""

    @abstractmethod
    async def members(self) -> frozenset[UUID]:
        """The nodes that are members now, this one among them."""

    @abstractmethod
    async def changed(self) -> None:
        """Returns when the members may have changed since `members` was called."""

    @abstractmethod
    async def publish(self, shards: str) -> None:
        """Shows to people which shards this node owns, until the session ends."""

    @abstractmethod
    async def end(self) -> None:
        """Leaves. The others see it at once, if the service answers; otherwise the session expires."""


class Presence(ABC):
    """The entry of one worker, under an id that is never used again. `worker/coordinated_beats.py` says why."""

    @abstractmethod
    async def renew(self) -> bool:
        """Shows a sign of life, and reads whether the entry is still there. False: it is gone for ever. Raises
        `CoordinatorUnavailable` if the service does not answer."""

    @abstractmethod
    async def end(self) -> None:
        """Removes the entry, if the service answers; otherwise it expires."""


class Coordinator(ABC):
    name: str

    @abstractmethod
    async def connect(self) -> None:
        """Raises `ConfigurationError` if the service refuses this client, whose settings must change then, and
        `CoordinatorUnavailable` if it does not answer."""

    @abstractmethod
    async def join(self, node: UUID, label: str) -> Session:
        """Makes a node a member. `label` tells people which process it is. Raises the errors of `connect`."""

    @abstractmethod
    async def appear(self, presence_id: UUID, label: str) -> Presence:
        """Makes the entry of a worker. Raises the errors of `connect`."""

    @abstractmethod
    async def present(self) -> frozenset[UUID]:
        """The entries of workers, not older than this call. Raises the errors of `connect`."""

    @abstractmethod
    async def close(self) -> None: ...


def node_of(text: str) -> UUID | None:
    """The id in the name of an entry. None for an entry that is somebody else's."""
    try:
        return UUID(text)
    except ValueError:
        return None
