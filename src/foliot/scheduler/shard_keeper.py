"""Keeps this node's shards: takes its fair share, renews the leases, and gives up the surplus.

A node has a new UUID at each start. By default, its shards are leased for nine seconds and renewed every three. It
trusts a lease until one second before its end, counted from before the renewal was sent. A takeover raises the epoch of
a shard, and every write of a scheduler names the epochs it relies on, so a node that slept through its lease writes
nothing. Ownership saves work; the epoch makes it safe.

With etcd or ZooKeeper, `scheduler/membership.py` knows sooner which nodes are alive: their number decides the fair
share, and the shards of a node whose session has ended are taken at once. Without its answer, all is as above.
"""

from __future__ import annotations

import os
import socket

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ShardsChanged
from foliot.model.ids import new_id
from foliot.scheduler.membership import Membership, View
from foliot.service import Service
from foliot.store.hints import SHARDS_TOPIC
from foliot.store.shards import Epochs
from foliot.store.store import Store

MARGIN_SECONDS = 1.0
# A node that has just joined looks again soon, because the others give up their surplus for it. So does a node that
# sees a free shard in another node's share, because that node may be dead.
SETTLING_SECONDS = 0.3


class ShardKeeper(Service):
    def __init__(
        self, *, store: Store, config: Config, clock: Clock, events: EventBus, membership: Membership | None = None
    ) -> None:
        super().__init__(clock=clock, events=events)
        self.scheduler_id = new_id() if membership is None else membership.node
        self._membership = membership
        self._store = store
        self._config = config
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._epochs: Epochs = {}
        self._trusted_until = 0.0
        self._has_joined = False

    @property
    def epochs(self) -> Epochs:
        """The shards that this node may act for right now."""
        return self._epochs if self.clock.monotonic() < self._trusted_until else {}

    async def run_once(self) -> float:
        asked_at, before = self.clock.monotonic(), set(self._epochs)
        view = View() if self._membership is None else self._membership.view
        shards = self._store.shards
        epochs = await shards.beat_scheduler(self.scheduler_id, self._name)
        if surplus := await shards.give_up_surplus(self.scheduler_id, nodes=view.nodes):
            epochs = {shard: epoch for shard, epoch in epochs.items() if shard not in surplus}
            self._store.hints.send([SHARDS_TOPIC])
        epochs |= await shards.take_shards(self.scheduler_id, nodes=view.nodes, dead=view.dead)
        if not self._has_joined:
            # The others may have a surplus now. The hint makes them look at once instead of at their next renewal.
            self._has_joined = True
            self._store.hints.send([SHARDS_TOPIC])
        self._epochs = epochs
        self._trusted_until = asked_at + self._config.shard_ttl_seconds - MARGIN_SECONDS
        if set(epochs) != before:
            if self._membership is not None:
                self._membership.publish(epochs)
            self.events.emit(ShardsChanged(len(epochs)))
            return SETTLING_SECONDS
        # Look again when the lease of a silent node expires, rather than a whole turn later.
        until_free = await shards.seconds_until_free(self.scheduler_id, dead=view.dead)
        turn = self._config.shard_renew_seconds
        return turn if until_free is None else min(turn, max(until_free, SETTLING_SECONDS))

    def hinted(self, topic: str) -> None:
        """Wakes when another node has released shards or has joined."""
        if topic == SHARDS_TOPIC:
            self.wake()

    async def on_stop(self) -> None:
        self._epochs = {}
        await self._store.shards.leave(self.scheduler_id)
