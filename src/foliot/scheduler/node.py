"""A scheduler node: its services, in the order in which they start."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.brokers.base import Broker
from foliot.clock import Clock
from foliot.config import Config
from foliot.coordination.base import Coordinator
from foliot.events import EventBus
from foliot.scheduler.announcer import Announcer
from foliot.scheduler.dispatcher import Dispatcher
from foliot.scheduler.expirer import Expirer
from foliot.scheduler.firer import Firer
from foliot.scheduler.gatekeeper import Gatekeeper
from foliot.scheduler.loader import Loader
from foliot.scheduler.membership import Membership
from foliot.scheduler.promoter import Promoter
from foliot.scheduler.pruner import Pruner
from foliot.scheduler.reaper import Reaper
from foliot.scheduler.recorder import Recorder
from foliot.scheduler.repairer import Repairer
from foliot.scheduler.replanner import Replanner
from foliot.scheduler.resumer import Resumer
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.scheduler.source_keeper import SourceKeeper
from foliot.scheduler.worker_sessions import WorkerSessions
from foliot.service import Service, Supervisor
from foliot.store.hints import HintListener
from foliot.store.store import Store


class SchedulerNode(Supervisor):
    def __init__(
        self,
        *,
        store: Store,
        config: Config,
        clock: Clock,
        events: EventBus,
        listen_url: str | None,
        exporters: Sequence[Service] = (),
        broker: Broker | None = None,
        coordinator: Coordinator | None = None,
    ) -> None:
        membership = None if coordinator is None else Membership(coordinator, clock=clock, events=events)
        shards = ShardKeeper(store=store, config=config, clock=clock, events=events, membership=membership)
        loader = Loader(store=store, shards=shards, clock=clock, events=events)
        sources = SourceKeeper(store=store, config=config, clock=clock, events=events)
        gatekeeper = Gatekeeper(store=store, clock=clock, events=events)
        reaper = Reaper(store=store, config=config, clock=clock, events=events)
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
            Recorder(store=store, clock=clock, events=events),
            Repairer(store=store, clock=clock, events=events),
            reaper,
            sources,
            *exporters,
        ]
        if membership is not None:
            # It stops after the shards, so that they are free before the other nodes see that this one has left.
            membership.on_change = shards.wake
            services.insert(0, membership)
        if coordinator is not None:
            # Independent of this node's own setting: each worker decides for itself.
            services.append(
                WorkerSessions(
                    coordinator, store=store, config=config, clock=clock, events=events, on_ended=reaper.wake
                )
            )
        listening = [shards.hinted, loader.hinted, gatekeeper.hinted, sources.hinted]
        if broker is not None:
            dispatcher = Dispatcher(
                store=store, shards=shards, broker=broker, config=config, clock=clock, events=events
            )
            services.append(dispatcher)
            listening.append(dispatcher.hinted)
        if listen_url is not None:

            def hinted(topic: str) -> None:
                for listener in listening:
                    listener(topic)

            services.append(HintListener(store.database, listen_url, hinted, clock=clock, events=events))
        super().__init__(services)
