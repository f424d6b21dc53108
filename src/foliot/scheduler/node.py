"""A scheduler node: its services, in the order in which they start."""

from __future__ import annotations

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.scheduler.firer import Firer
from foliot.scheduler.promoter import Promoter
from foliot.scheduler.pruner import Pruner
from foliot.scheduler.reaper import Reaper
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Supervisor
from foliot.store.store import Store


class SchedulerNode(Supervisor):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus) -> None:
        shards = ShardKeeper(store=store, config=config, clock=clock, events=events)
        super().__init__(
            [
                shards,
                Pruner(store=store, clock=clock, events=events),
                Firer(store=store, shards=shards, clock=clock, events=events),
                Promoter(store=store, clock=clock, events=events),
                Reaper(store=store, config=config, clock=clock, events=events),
            ]
        )
