"""The backend of a worker without database access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.errors import FoliotError
from foliot.events import EventBus
from foliot.model.job_request import JobRequest
from foliot.model.namespace import Namespace, bare
from foliot.model.worker_protocol import (
    BeatWorker,
    CallRun,
    CheckPayload,
    ExpandRun,
    FromWorker,
    PayloadTaken,
    RegisterWorker,
    RunCalled,
    RunExpanded,
    TaskOffer,
    WorkerBeat,
    WorkerRegistered,
    WorkerSettings,
)
from foliot.sdk.app import App
from foliot.sdk.server_address import ServerAddress
from foliot.service import Service
from foliot.store.store import Store
from foliot.store.workers import Beat
from foliot.submission.child_runs import Expanded, Expanding
from foliot.worker.announcement import OwnAnnouncement
from foliot.worker.backend import Beats, Key
from foliot.worker.declared_jobs import jobs_of
from foliot.worker.holdings import Holdings
from foliot.worker.remote.connection import Connection
from foliot.worker.remote.messages import beat_of
from foliot.worker.remote.news import News
from foliot.worker.remote.store import Nothing, OwnState, RemoteStore

HEARING_POLLS = 60.0
"""The server polls for its waiting workers."""


class RemoteBackend:
    hearing_polls = HEARING_POLLS
    database: Store | None = None

    def __init__(
        self,
        connection: Connection,
        address: ServerAddress,
        settings: WorkerSettings,
        *,
        clock: Clock,
        events: EventBus,
        on_refused: Callable[[FoliotError], None],
    ) -> None:
        self._connection = connection
        self._address = address
        self._clock = clock
        self._events = events
        self._on_refused = on_refused
        self._own = own = OwnState(Namespace(settings.namespace), settings.body_max_bytes, settings.lease_seconds)
        self.store = RemoteStore(connection, own, clock)
        self.child_runs = RemoteChildRuns(connection)
        self.calls = RemoteCalls(connection, own)
        self.registration = RemoteRegistration(connection, own)
        self._news: News | None = None

    def listener(self, on_hint: Callable[[str], None]) -> Service:
        self._news = News(
            self._connection,
            self._own,
            on_hint,
            tasks=lambda: list(self.registration.offers),
            clock=self._clock,
            events=self._events,
        )
        return self._news

    def is_listening(self) -> bool:
        return self._news is not None and self._news.is_listening

    @asynccontextmanager
    async def open_beats(self, events: EventBus) -> AsyncIterator[Beats]:
        # A connection of its own: it belongs to the event loop of the heartbeat's thread.
        async with Connection(self._address, clock=self._clock, on_refused=self._on_refused) as connection:
            yield RemoteBeats(connection, self._own)

    def attach(
        self,
        holdings: Holdings,
        begin_lease: Callable[[float], None],
        free_slots: Callable[[], Mapping[str, int]],
    ) -> None:
        self._own.holdings, self._own.begin_lease, self._own.free_slots = holdings, begin_lease, free_slots


class RemoteBeats:
    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own
        self._claims = -1
        """The number of claims at the last heartbeat with an answer."""

    async def beat(self, worker_id: UUID, held: Sequence[Key], left_running: int = 0) -> Beat:
        claims = self._own.claims
        asked = BeatWorker(
            worker_id=worker_id,
            held=list(held),
            left_running=left_running,
            is_idle=not held and claims == self._claims,
        )
        answer = await self._connection.ask("beat", asked, WorkerBeat)
        self._claims = claims
        return beat_of(answer)


class RemoteRegistration:
    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own
        self.offers: dict[str, TaskOffer] = {}

    async def announce(self, app: App, queue_of_task: Mapping[str, str], said: OwnAnnouncement) -> None:
        schedules = {job.name: job.schedule for job in jobs_of(app)}
        for qualified, queue in queue_of_task.items():
            name, version = bare(qualified), said.versions.get(qualified)
            options = app.tasks[name].options if name in app.tasks else None
            self.offers[name] = TaskOffer(
                queue=bare(queue),
                guarantee=None if options is None else options.guarantee,
                tags=None if options is None else options.tags,
                schema=None if version is None else version.schema,
                description="" if version is None else version.description,
                schedule=schedules.get(name),
            )

    async def register(self, worker_id: UUID, name: str, slots: Mapping[str, int], labels: Mapping[str, str]) -> None:
        asked = RegisterWorker(
            worker_id=worker_id,
            name=name,
            queues={bare(queue): number for queue, number in slots.items()},
            tasks=self.offers,
            labels=dict(labels),
        )
        await self._connection.ask_patiently("register", asked, WorkerRegistered)
        self._own.worker_id, self._own.slots = worker_id, dict(slots)

    async def leave(self, worker_id: UUID) -> None:
        await self._connection.ask("leave", FromWorker(worker_id=worker_id), Nothing)


class RemoteChildRuns:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def expand_workflow(
        self, namespace: Namespace, worker_id: UUID, attempt: Expanding, payload: Mapping[str, Any]
    ) -> Expanded:
        asked = ExpandRun(
            worker_id=worker_id,
            run_id=attempt.run_id,
            token=attempt.token,
            kind="workflow",
            payload=dict(payload),
            tick=attempt.tick,
            traceparent=attempt.traceparent,
        )
        return await self._expand(asked)

    async def expand_map(
        self, namespace: Namespace, worker_id: UUID, attempt: Expanding, payload: Mapping[str, Any]
    ) -> Expanded:
        asked = ExpandRun(
            worker_id=worker_id,
            run_id=attempt.run_id,
            token=attempt.token,
            kind="map",
            payload=dict(payload),
            tick=attempt.tick,
            traceparent=attempt.traceparent,
            upstream=attempt.upstream,
        )
        return await self._expand(asked)

    async def _expand(self, asked: ExpandRun) -> Expanded:
        answer = await self._connection.ask_patiently("expand", asked, RunExpanded)
        return Expanded(answer.outcome)


class RemoteCalls:
    def __init__(self, connection: Connection, own: OwnState) -> None:
        self._connection, self._own = connection, own

    async def call(
        self, namespace: Namespace, worker_id: UUID, run_id: UUID, token: int, name: str, job: JobRequest
    ) -> UUID | None:
        given = msgspec.json.decode(msgspec.json.encode(job))
        asked = CallRun(worker_id=worker_id, run_id=run_id, token=token, name=name, job=given)
        return (await self._connection.ask_patiently("checkpoints/call", asked, RunCalled)).run_id

    async def takes_elsewhere(
        self, namespace: Namespace, task: str, schema: Mapping[str, Any] | None, payload: Mapping[str, Any]
    ) -> bool:
        if self._own.worker_id is None:
            return False
        asked = CheckPayload(
            worker_id=self._own.worker_id,
            task=task,
            schema=None if schema is None else dict(schema),
            payload=dict(payload),
        )
        return (await self._connection.ask("payload", asked, PayloadTaken)).elsewhere
