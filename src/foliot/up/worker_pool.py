"""The workers of `foliot up`. With bounds such as 2:8, their number follows the load by the rule in `model/scaling.py`.

A worker that is taken away drains, like one that an operator drains: it claims nothing more, finishes its runs however
long they take, and ends. So no run is lost or repeated.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection

from foliot.assembly import Surroundings
from foliot.model.namespace import Namespace, bare
from foliot.model.scaling import Bounds, QueueLoad, Scale, decide, workers_wanted
from foliot.service import Service
from foliot.store.hints import worker_topic
from foliot.store.overview import QueueView, load_of
from foliot.store.store import Store
from foliot.store.workers import WorkerView
from foliot.up.child import Child
from foliot.up.events import WorkersScaled

LOOK_SECONDS = 1.0


class WorkerPool(Service):
    """`queues` are those that its workers serve, without their namespace. `store` is needed only where the bounds
    differ."""

    def __init__(
        self,
        *,
        bounds: Bounds,
        make: Callable[[int], Child],
        queues: Collection[str],
        store: Store | None,
        around: Surroundings,
    ) -> None:
        super().__init__(clock=around.clock, events=around.events)
        self._bounds = bounds
        self._make = make
        self._store = store
        self._slots = around.config.slots
        self._namespace = Namespace(around.config.namespace)
        self._queues = frozenset(queues)
        self._made = 0
        self._active: list[Child] = []
        self._retired: list[Child] = []
        self._scale = Scale(bounds.least, since=self.clock.monotonic())

    @property
    def children(self) -> list[Child]:
        """The workers that serve and the workers that drain."""
        return [*self._active, *self._retired]

    async def on_start(self) -> None:
        await self._resize()

    async def run_once(self) -> float | None:
        if self._store is None:
            return None
        self._retired = [child for child in self._retired if not child.has_ended]
        living = await self._store.workers.list_workers(self._namespace)
        await self._drain_retired(self._store, living)
        loads = self._loads(await self._store.overview.list_queues(self._namespace), living)
        before, now = self._scale.workers, self.clock.monotonic()
        self._scale = decide(self._scale, workers_wanted(loads, self._slots), self._bounds, now)
        if self._scale.workers != before:
            self.events.emit(WorkersScaled(before, self._scale.workers))
            await self._resize()
        return LOOK_SECONDS

    async def _resize(self) -> None:
        while len(self._active) < self._scale.workers:
            self._made += 1
            child = self._make(self._made)
            self._active.append(child)
            await child.start()
        while len(self._active) > self._scale.workers:
            child = self._active.pop()
            child.retire()
            self._retired.append(child)
            # The next turn drains it.
            self.wake()

    async def _drain_retired(self, store: Store, living: list[WorkerView]) -> None:
        """In every turn, because a worker may register late, or again under another id."""
        retired = {name_of(child) for child in self._retired}
        ids = [worker.id for worker in living if worker.name in retired and worker.draining_at is None]
        if ids:
            await store.workers.drain_workers(ids)
            for worker_id in ids:
                store.hints.send([worker_topic(worker_id)])

    def _loads(self, queues: list[QueueView], living: list[WorkerView]) -> list[QueueLoad]:
        """A worker of the pool that is still starting counts as if it had its slots already."""
        own = {name_of(child) for child in self._active}
        others = [worker for worker in living if worker.draining_at is None and worker.name not in own]
        found = []
        for queue in queues:
            if (name := bare(queue.name)) in self._queues:
                elsewhere = sum(worker.queues.get(name, 0) for worker in others)
                slots = len(self._active) * self._slots + elsewhere
                found.append(load_of(queue, slots=slots, elsewhere=elsewhere))
        return found


def name_of(child: Child) -> str:
    """The name under which the worker of this process registers."""
    return f"{socket.gethostname()}:{child.pid}"
