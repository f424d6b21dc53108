"""Waits at the server for news, with one open request. It takes the place of the session that listens for hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foliot.clock import Clock
from foliot.errors import FoliotError, UnknownWorker
from foliot.events import EventBus
from foliot.model.namespace import bare
from foliot.model.worker_protocol import WAIT_MAX_SECONDS, WaitForWork, WorkNews
from foliot.service import Service
from foliot.store.hints import ALL_QUEUES_TOPIC, worker_topic
from foliot.worker.remote.connection import ANSWER_SECONDS, Connection
from foliot.worker.remote.store import OwnState

BUSY_SECONDS = 1.0
"""A worker with a queue without free slots asks this often, since free slots change."""
UNREGISTERED_SECONDS = 0.2
GRACE_SECONDS = 10.0
"""A server that is this late has gone."""


class News(Service):
    def __init__(
        self,
        connection: Connection,
        own: OwnState,
        on_hint: Callable[[str], None],
        *,
        tasks: Callable[[], Sequence[str]],
        clock: Clock,
        events: EventBus,
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._connection = connection
        self._own = own
        self._on_hint = on_hint
        self._tasks = tasks
        self.is_listening = False

    async def run_once(self) -> float:
        own = self._own
        if own.worker_id is None or own.slots is None:
            return UNREGISTERED_SECONDS
        free = own.free_slots()
        slots = {bare(queue): free.get(queue, 0) for queue in own.slots}
        seconds = WAIT_MAX_SECONDS if all(slots.values()) else BUSY_SECONDS
        asked = WaitForWork(worker_id=own.worker_id, slots=slots, tasks=list(self._tasks()), seconds=seconds)
        try:
            news = await self._connection.ask(
                "wait", asked, WorkNews, wait_seconds=seconds - ANSWER_SECONDS + GRACE_SECONDS
            )
        except UnknownWorker:
            # The heartbeat registers it again.
            self.is_listening = False
            self._on_hint(worker_topic(asked.worker_id))
            return UNREGISTERED_SECONDS
        except FoliotError:
            self.is_listening = False
            raise
        self.is_listening = True
        if news.beat:
            self._on_hint(worker_topic(asked.worker_id))
        if news.claim:
            self._on_hint(ALL_QUEUES_TOPIC)
        return 0
