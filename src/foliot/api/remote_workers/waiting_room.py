"""Where idle workers wait for news, each with one open request.

Workers that serve the same queues and know the same tasks are alike: any of them can claim what there is. A hint
wakes one of them. If its claim finds a run, two more are woken, and so on: a thousand runs wake a thousand workers
soon, and a single run wakes few. If it does not claim, because its connection is dead, the next one is woken in its
place. Hints can get lost, so one worker of each kind is woken once in a while without a hint. The load on the database
depends on the number of kinds, not on the number of workers.

The session that listens for hints begins with the first worker.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection
from random import uniform
from uuid import UUID

from foliot.clock import Clock
from foliot.model.worker_protocol import WorkNews
from foliot.service import own_task
from foliot.store.hints import ALL_QUEUES_TOPIC, BROKERLESS_TOPIC, WORKER_TOPIC, HintListener
from foliot.store.store import Store

HEARING_POLLS = 5
SILENT_SECONDS = 0.5
"""A woken worker that has not claimed by then is taken for dead."""
WOKEN_BY_SUCCESS = 2
REMEMBERED_MAX = 50_000

Kind = tuple[frozenset[str], frozenset[str]]
"""Queues and tasks, by qualified name."""


class WaitingRoom:
    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        poll_seconds: float,
        listen_url: str | None,
        stopping: asyncio.Event,
        on_worker_hint: Callable[[UUID], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._poll_seconds = poll_seconds
        self._stopping = stopping
        self._on_worker_hint = on_worker_hint
        self._listener = (
            None
            if listen_url is None
            else HintListener(store.database, listen_url, self._on_hint, clock=clock, events=store.events)
        )
        self._waiting: dict[Kind, OrderedDict[UUID, asyncio.Future[WorkNews]]] = {}
        self._kind_of: dict[UUID, Kind] = {}
        self._expected: dict[UUID, asyncio.TimerHandle] = {}
        self._hinted_at: dict[str, float] = {}
        self._left_at: OrderedDict[UUID, float] = OrderedDict()
        """When each worker last claimed, or last stopped waiting."""
        self._running: asyncio.Task[None] | None = None

    @property
    def number(self) -> int:
        return len(self._kind_of)

    async def wait(
        self, worker_id: UUID, queues: Collection[str], tasks: Collection[str], seconds: float, *, is_complete: bool
    ) -> WorkNews:
        """`queues`: those with free slots. `is_complete`: these are all queues of the worker, so that it misses no hint
        while it waits."""
        if self._stopping.is_set():
            return WorkNews()
        self._open()
        self._leave(worker_id, WorkNews())
        if (timer := self._expected.pop(worker_id, None)) is not None:
            # It was woken and could not claim.
            timer.cancel()
            self._wake_one((frozenset(queues), frozenset(tasks)))
        if self._has_missed_hint(worker_id, queues):
            return WorkNews(claim=True)
        kind: Kind = (frozenset(queues), frozenset(tasks))
        news: asyncio.Future[WorkNews] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(kind, OrderedDict())[worker_id] = news
        self._kind_of[worker_id] = kind
        try:
            async with asyncio.timeout(seconds):
                return await news
        except TimeoutError:
            return WorkNews()
        finally:
            # Unless a newer request of the same worker has taken its place.
            if kind in self._waiting and self._waiting[kind].get(worker_id) is news:
                self._leave(worker_id, WorkNews())
            if is_complete:
                self._note_leaving(worker_id)

    async def close(self) -> None:
        """Ends all waits, and returns when the room no longer uses the database."""
        self._stopping.set()
        if self._running is not None:
            await asyncio.wait([self._running])

    def claiming(self, worker_id: UUID) -> None:
        """The worker is alive and claims."""
        self._open()
        self._note_leaving(worker_id)
        if (timer := self._expected.pop(worker_id, None)) is not None:
            timer.cancel()

    def claimed(self, queues: Collection[str]) -> None:
        """A claim found runs of these queues. There may be more."""
        kinds = [kind for kind in self._waiting if not kind[0].isdisjoint(queues)]
        for _ in range(WOKEN_BY_SUCCESS):
            for kind in kinds:
                self._wake_one(kind)

    def _open(self) -> None:
        if self._running is None and not self._stopping.is_set():
            self._running = own_task(self._run(), name="waiting room")

    def _has_missed_hint(self, worker_id: UUID, queues: Collection[str]) -> bool:
        """Whether a hint came between the worker's last request and this one."""
        left_at = self._left_at.get(worker_id)
        if left_at is None:
            # It has never claimed here.
            return bool(queues)
        return any(self._hinted_at.get(queue, left_at) > left_at for queue in (*queues, ALL_QUEUES_TOPIC))

    def _note_leaving(self, worker_id: UUID) -> None:
        self._left_at[worker_id] = self._clock.monotonic()
        self._left_at.move_to_end(worker_id)
        if len(self._left_at) > REMEMBERED_MAX:
            self._left_at.popitem(last=False)

    def _leave(self, worker_id: UUID, news: WorkNews) -> None:
        kind = self._kind_of.pop(worker_id, None)
        if kind is None:
            return
        alike = self._waiting[kind]
        waiting = alike.pop(worker_id)
        if not alike:
            del self._waiting[kind]
        if not waiting.done():
            waiting.set_result(news)

    def _wake_one(self, kind: Kind) -> None:
        """Wakes the worker of this kind that has waited longest."""
        if kind not in self._waiting:
            return
        worker_id = next(iter(self._waiting[kind]))
        self._leave(worker_id, WorkNews(claim=True))
        if kind[0]:
            timer = asyncio.get_running_loop().call_later(SILENT_SECONDS, self._replace_silent, worker_id, kind)
            self._expected[worker_id] = timer

    def _replace_silent(self, worker_id: UUID, kind: Kind) -> None:
        self._expected.pop(worker_id, None)
        self._wake_one(kind)

    def _on_hint(self, topic: str) -> None:
        if topic.startswith(WORKER_TOPIC):
            worker_id = UUID(topic.removeprefix(WORKER_TOPIC))
            self._on_worker_hint(worker_id)
            self._leave(worker_id, WorkNews(beat=True))
            return
        is_for_all = topic in (ALL_QUEUES_TOPIC, BROKERLESS_TOPIC)
        if topic.startswith("/") and not is_for_all:
            return
        self._hinted_at[ALL_QUEUES_TOPIC if is_for_all else topic] = self._clock.monotonic()
        for kind in [kind for kind in self._waiting if is_for_all or topic in kind[0]]:
            self._wake_one(kind)

    async def _run(self) -> None:
        """Wakes one worker of each kind once in a while, until the server stops; then all of them."""
        if self._listener is not None:
            await self._listener.start()
        try:
            while not await self._clock.wait(self._stopping, self._pause()):
                for kind in list(self._waiting):
                    self._wake_one(kind)
        finally:
            for worker_id in list(self._kind_of):
                self._leave(worker_id, WorkNews())
            for timer in self._expected.values():
                timer.cancel()
            if self._listener is not None:
                await self._listener.stop()

    def _pause(self) -> float:
        is_hearing = self._listener is not None and self._listener.is_listening
        seconds = self._poll_seconds * (HEARING_POLLS if is_hearing else 1)
        self._hinted_at = {
            queue: at for queue, at in self._hinted_at.items() if self._clock.monotonic() - at < 10 * seconds
        }
        return seconds * uniform(0.75, 1.0)  # noqa: S311
