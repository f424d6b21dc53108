"""Ends the leases of workers whose entry in etcd or ZooKeeper is gone. `worker/coordinated_beats.py` is the other side.

The order makes it safe, whatever the coordinator forgets or reports: PostgreSQL first names the entries on which
workers rely, then the coordinator is asked which entries it has, and a missing one has been missing from then on,
because its id is never used again. After as long as a worker trusts an entry that it has seen, no worker relies on it
any more. A worker that has meanwhile renewed its lease in PostgreSQL is not touched: the statement names the entry.

Without an answer from the coordinator nothing happens here, and the leases in PostgreSQL decide.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.coordination.base import Coordinator, CoordinatorUnavailable
from foliot.coordination.events import WorkersGone
from foliot.errors import ConfigurationError
from foliot.events import EventBus
from foliot.service import Service
from foliot.store.store import Store


class WorkerSessions(Service):
    def __init__(
        self,
        coordinator: Coordinator,
        *,
        store: Store,
        config: Config,
        clock: Clock,
        events: EventBus,
        on_ended: Callable[[], None],
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._coordinator = coordinator
        self._store = store
        self._config = config
        self._on_ended = on_ended
        self._missing_since: dict[UUID, float] = {}

    async def run_once(self) -> float:
        relied_on = await self._store.workers.worker_sessions()
        if not relied_on:
            self._missing_since.clear()
            return self._config.reaper_seconds
        try:
            present = await self._coordinator.present()
        except (CoordinatorUnavailable, ConfigurationError):
            # The membership of this node reports it.
            return self._config.reaper_seconds
        now = self.clock.monotonic()
        self._missing_since = {one: self._missing_since.get(one, now) for one in relied_on if one not in present}
        overdue = [one for one, since in self._missing_since.items() if now - since >= relied_on[one]]
        if overdue and (ended := await self._store.workers.end_sessions(overdue)):
            self.events.emit(WorkersGone(ended))
            self._on_ended()
        waits = [since + relied_on[one] - now for one, since in self._missing_since.items() if one not in overdue]
        return min(self._config.reaper_seconds, *waits) if waits else self._config.reaper_seconds
