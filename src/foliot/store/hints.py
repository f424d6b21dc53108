"""Hints such as "this queue may have ready runs" or "shards are free". They only shorten a wait: losing all of them
loses nothing.

NOTIFY makes commits wait for each other, so it is never sent inside the transaction that stores a job. It follows in a
statement of its own: the first hint at once, later ones gathered and at most a hundred times a second. LISTEN needs a
session of its own, which a pooler in transaction mode can't offer. There, without a direct URL, Foliot polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from uuid import UUID

import asyncpg

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.service import Service
from foliot.store import queries
from foliot.store.postgres import Database

CHANNEL = "foliot_ready"
# Every other topic is the name of a queue, and no such name begins with a slash.
SHARDS_TOPIC = "/shards"
JOBS_TOPIC = "/jobs"
GATES_TOPIC = "/gates"
SOURCES_TOPIC = "/sources"
ALL_QUEUES_TOPIC = "/queues"
BROKERLESS_TOPIC = "/brokerless"
"""Runs are ready, and the scheduler can't reach the broker that announces them."""
WORKER_TOPIC = "/worker/"
GATHER_SECONDS = 0.01
CHECK_SECONDS = 10.0


def worker_topic(worker_id: UUID) -> str:
    """Hints on this topic wake one worker, because a run that it holds was cancelled."""
    return f"{WORKER_TOPIC}{worker_id}"


class HintSender(Service):
    """Sends hints in the background, without delaying the caller."""

    def __init__(self, database: Database, *, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._database = database
        self._topics: set[str] = set()
        self._query = queries.load("hints")["notify"]

    def send(self, topics: Iterable[str]) -> None:
        self._topics.update(topics)
        if self._topics:
            self.wake()

    async def run_once(self) -> float | None:
        if not self._topics:
            return None
        topics, self._topics = sorted(self._topics), set()
        await self._database.execute(self._query, CHANNEL, topics)
        await self.clock.wait(self._stopping, GATHER_SECONDS)
        return 0 if self._topics else None


class HintListener(Service):
    """Calls `on_hint(topic)` for every hint. It uses a session of its own, and replaces it when it breaks."""

    def __init__(
        self, database: Database, url: str, on_hint: Callable[[str], None], *, clock: Clock, events: EventBus
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._database = database
        self._url = url
        self._on_hint = on_hint
        self._session: Any = None

    @property
    def is_listening(self) -> bool:
        return self._session is not None and not self._session.is_closed()

    async def run_once(self) -> float:
        if not self.is_listening:
            self._session = await asyncpg.connect(self._url, **self._database.connect_arguments())
            await self._session.add_listener(CHANNEL, lambda *notice: self._on_hint(notice[3]))
            self._session.add_termination_listener(lambda _: self.wake())
        else:
            await self._prove_alive()
        return CHECK_SECONDS

    async def on_stop(self) -> None:
        if self._session is not None:
            self._session.terminate()

    async def _prove_alive(self) -> None:
        """A half-open connection stays silent forever, so only a statement shows it."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._session.execute("select 1")
        except BaseException:
            with suppress(Exception):
                self._session.terminate()
            self._session = None
            raise
