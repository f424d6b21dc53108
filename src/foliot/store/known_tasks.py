"""Which tasks exist and the queue each belongs to: what workers have announced, remembered for a few seconds."""

from __future__ import annotations

from foliot.clock import Clock
from foliot.config import did_you_mean
from foliot.errors import UnknownTask
from foliot.model.namespace import Namespace
from foliot.store.store import Store

FRESH_SECONDS = 5.0


class KnownTasks:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._queues: dict[str, tuple[float, dict[str, str]]] = {}

    async def queue_of(self, namespace: Namespace, task: str) -> str:
        """Raises `UnknownTask` for a name that no worker of the namespace ever announced: such a job could never run."""
        read_at, queues = self._queues.get(namespace.name, (float("-inf"), {}))
        now = self._clock.monotonic()
        if task not in queues or now - read_at > FRESH_SECONDS:
            # One asks anew; the others, of whom there may be many at that moment, go by what was known.
            self._queues[namespace.name] = (now, queues)
            queues = await self._store.workers.list_tasks(namespace)
            self._queues[namespace.name] = (now, queues)
        try:
            return queues[task]
        except KeyError:
            raise UnknownTask(f"task: no worker knows a task named {task!r}{did_you_mean(task, queues)}", field="task") from None
