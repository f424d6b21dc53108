"""A scheduler node: its services, in the order in which they start."""

from __future__ import annotations

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.scheduler.announcer import Announcer
from foliot.scheduler.expirer import Expirer
from foliot.scheduler.firer import Firer
from foliot.scheduler.gatekeeper import Gatekeeper
from foliot.scheduler.loader import Loader
from foliot.scheduler.promoter import Promoter
from foliot.scheduler.pruner import Pruner
from foliot.scheduler.reaper import Reaper
from foliot.scheduler.repairer import Repairer
from foliot.scheduler.replanner import Replanner
from foliot.scheduler.resumer import Resumer
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.service import Service, Supervisor
from foliot.store.hints import HintListener
from foliot.store.store import Store


class SchedulerNode(Supervisor):
    def __init__(self, *, store: Store, config: Config, clock: Clock, events: EventBus, listen_url: str | None) -> None:
        shards = ShardKeeper(store=store, config=config, clock=clock, events=events)
        loader = Loader(store=store, shards=shards, clock=clock, events=events)
        gatekeeper = Gatekeeper(store=store, clock=clock, events=events)
        services: list[Service] = [
            shards,
            Pruner(store=store, clock=clock, events=events),
            loader,
            Firer(store=store, shards=shards, loader=loader, clock=clock, events=events),
            Replanner(store=store, shards=shards, clock=clock, events=events),
            Resumer(store=store, shards=shards, clock=clock, events=events),
            gatekeeper,
            Promoter(store=store, clock=clock, events=events),
            Announcer(store=store, config=config, clock=clock, events=events),
            Expirer(store=store, clock=clock, events=events),
            Repairer(store=store, clock=clock, events=events),
            Reaper(store=store, config=config, clock=clock, events=events),
        ]
        if listen_url is not None:

            def hinted(topic: str) -> None:
                shards.hinted(topic)
                loader.hinted(topic)
                gatekeeper.hinted(topic)

            services.append(HintListener(store.database, listen_url, hinted, clock=clock, events=events))
        super().__init__(services)
