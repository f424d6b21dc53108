"""The backend of a worker with access to the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.coordination.base import Coordinator
from foliot.events import EventBus
from foliot.model.namespace import Namespace
from foliot.sdk.app import App
from foliot.service import Service
from foliot.store.hints import HintListener
from foliot.store.postgres import Database
from foliot.store.store import Store
from foliot.store.workers import Workers
from foliot.submission.calls import Calls
from foliot.submission.child_runs import ChildRuns
from foliot.submission.declared_jobs import declare_jobs
from foliot.worker.announcement import OwnAnnouncement
from foliot.worker.backend import Beats
from foliot.worker.coordinated_beats import coordinated
from foliot.worker.declared_jobs import jobs_of
from foliot.worker.holdings import Holdings

HEARING_POLLS = 5.0


class DirectBackend:
    hearing_polls = HEARING_POLLS

    def __init__(
        self,
        store: Store,
        *,
        config: Config,
        clock: Clock,
        listen_url: str | None,
        new_coordinator: Callable[[], Coordinator] | None = None,
    ) -> None:
        """`new_coordinator`: makes the one in which this worker shows that it is alive."""
        self.store = store
        self.database = store
        self.child_runs = ChildRuns(store, aging_seconds=config.aging_seconds)
        self.calls = Calls(store=store, clock=clock)
        self.registration = DirectRegistration(store, Namespace(config.namespace))
        self._config = config
        self._clock = clock
        self._listen_url = listen_url
        self._new_coordinator = new_coordinator
        self._listener: HintListener | None = None

    def listener(self, on_hint: Callable[[str], None]) -> Service | None:
        if self._listen_url is not None:
            database, events = self.store.database, self.store.events
            self._listener = HintListener(database, self._listen_url, on_hint, clock=self._clock, events=events)
        return self._listener

    def is_listening(self) -> bool:
        return self._listener is not None and self._listener.is_listening

    @asynccontextmanager
    async def open_beats(self, events: EventBus) -> AsyncIterator[Beats]:
        database = Database(
            self.store.database.url, config=self._config, clock=self._clock, events=events, part="foliot heartbeat",
            plans_once=True,
        )  # fmt: skip
        async with database:
            workers = Workers(database, ttl_seconds=self._config.worker_ttl_seconds)
            if self._new_coordinator is None:
                yield workers
                return
            async with coordinated(
                workers, self._new_coordinator, config=self._config, clock=self._clock, events=events
            ) as beats:
                yield beats

    def attach(
        self,
        holdings: Holdings,
        begin_lease: Callable[[float], None],
        free_slots: Callable[[], Mapping[str, int]],
    ) -> None:
        """Nothing to do: only heartbeats renew the lease."""


class DirectRegistration:
    def __init__(self, store: Store, namespace: Namespace) -> None:
        self._store = store
        self._namespace = namespace
        self._tasks: list[str] = []
        self._announcement = ""

    async def announce(self, app: App, queue_of_task: Mapping[str, str], said: OwnAnnouncement) -> None:
        options = {self._namespace.qualified(name): task.options for name, task in app.tasks.items()}
        self._tasks, self._announcement = sorted(queue_of_task), said.hash
        await self._store.announcements.put_announcement(said.hash, said.text)
        await self._store.workers.announce_tasks(
            queue_of_task,
            {name: found.guarantee for name, found in options.items()},
            {name: found.tags for name, found in options.items() if found.tags},
            said.hash,
        )
        await declare_jobs(jobs_of(app), store=self._store, events=self._store.events, namespace=self._namespace)

    async def register(self, worker_id: UUID, name: str, slots: Mapping[str, int], labels: Mapping[str, str]) -> None:
        await self._store.workers.register_worker(worker_id, name, slots, self._tasks, labels, self._announcement)

    async def leave(self, worker_id: UUID) -> None:
        await self._store.workers.remove_worker(worker_id)
