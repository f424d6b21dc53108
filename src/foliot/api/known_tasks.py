"""Which tasks exist and the queue each belongs to: what workers have announced, remembered for a few seconds."""

from __future__ import annotations

from foliot.clock import Clock
from foliot.config import did_you_mean
from foliot.errors import UnknownTask
from foliot.store.store import Store

FRESH_SECONDS = 5.0


class KnownTasks:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._queues: dict[str, str] = {}
        self._read_at = float("-inf")

    async def queue_of(self, task: str) -> str:
        """Raises `UnknownTask` for a name that no worker ever announced: such a job could never run."""
        is_stale = self._clock.monotonic() - self._read_at > FRESH_SECONDS
        if is_stale or task not in self._queues:
            self._queues = await self._store.workers.list_tasks()
            self._read_at = self._clock.monotonic()
        try:
            return self._queues[task]
        except KeyError:
            hint = did_you_mean(task, self._queues)
            raise UnknownTask(f"task: no worker knows a task named {task!r}{hint}", field="task") from None
