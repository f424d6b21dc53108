"""Keeps this node's shards: takes its fair share, renews it, gives up what it has too much of, and lets go when it
must.

A node is a UUID per start of its process. Its shards are leased for nine seconds and renewed every three; a lease is
trusted until a second before its end, counted from before the renewal was sent. Taking a shard over raises its epoch,
and every write of a scheduler names the epochs it believes in: a node that slept through its lease writes nothing.
Ownership saves work; it is the epoch that makes it safe.
"""

from __future__ import annotations

import os
import socket

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, ShardsChanged
from foliot.model.ids import new_id
from foliot.service import Service
from foliot.store.hints import SHARDS_TOPIC
from foliot.store.shards import Epochs
from foliot.store.store import Store

MARGIN_SECONDS = 1.0
# A node that has just come looks again soon: others are giving up their surplus for it. So does one that sees a free
# shard which is somebody else's due: that one may be dead.
SETTLING_SECONDS = 0.3


class ShardKeeper(Service):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self.scheduler_id = new_id()
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
        shards = self._store.shards
        epochs = await shards.beat_scheduler(self.scheduler_id, self._name)
        if surplus := await shards.give_up_surplus(self.scheduler_id):
            epochs = {shard: epoch for shard, epoch in epochs.items() if shard not in surplus}
            self._store.hints.send([SHARDS_TOPIC])
        epochs |= await shards.take_shards(self.scheduler_id)
        if not self._has_joined:
            # Others may have more than their share now; they look at once instead of at their next renewal.
            self._has_joined = True
            self._store.hints.send([SHARDS_TOPIC])
        self._epochs = epochs
        self._trusted_until = asked_at + self._config.shard_ttl_seconds - MARGIN_SECONDS
        if set(epochs) != before:
            self.events.emit(ShardsChanged(len(epochs)))
            return SETTLING_SECONDS
        # A node that does not renew has gone: its lease is not over a whole turn before anybody notices.
        until_free = await shards.seconds_until_free(self.scheduler_id)
        turn = self._config.shard_renew_seconds
        return turn if until_free is None else min(turn, max(until_free, SETTLING_SECONDS))

    def hinted(self, topic: str) -> None:
        """Somebody let go of shards."""
        if topic == SHARDS_TOPIC:
            self.wake()

    async def on_stop(self) -> None:
        self._epochs = {}
        await self._store.shards.leave(self.scheduler_id)
