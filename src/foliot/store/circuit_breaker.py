"""The circuit breaker: counts failures of tasks, opens and closes circuits, and sends probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from foliot.model.circuit_breaker import Circuit
from foliot.store import queries
from foliot.store.gatekeeper_lock import gates_locked
from foliot.store.postgres import Database

PROBE_SECONDS = 10.0
"""A probe that has not started after this time may be replaced by one of another queue."""
HEAD = 5000
"""How many of a queue's first runs are searched for a probe."""


@dataclass(frozen=True, slots=True)
class CircuitState:
    task: str
    failures: int
    open_until: datetime | None
    probe_id: UUID | None


class CircuitBreaker:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("circuit_breaker")

    async def record_failures(self, failures: Mapping[str, int], circuits: Mapping[str, Circuit]) -> dict[str, bool]:
        """Returns for each task whether its circuit is open now."""
        bounds = [circuits[task] for task in failures]
        rows = await self._database.fetch(
            self._queries["record_failures"],
            tasks=list(failures),
            failures=list(failures.values()),
            bounds=[bound.failures for bound in bounds],
            open_seconds=[bound.seconds for bound in bounds],
            now=self._database.clock.sql_now(),
            is_repeatable=False,
        )
        return {row[0]: row[1] for row in rows}

    async def record_successes(self, tasks: Sequence[str], run_ids: Sequence[UUID]) -> list[str]:
        """Returns the tasks that are healthy again."""
        return [
            row[0]
            for row in await self._database.fetch(self._queries["record_successes"], tasks=tasks, run_ids=run_ids)
        ]

    async def send_probes(self) -> list[str]:
        """Returns the queues of the probes. Does nothing while another gatekeeper works."""
        now = self._database.clock.sql_now()
        async with gates_locked(self._database) as session:
            if session is None:
                return []
            return [row[0] for row in await session.fetch(self._queries["send_probes"].sql, now, PROBE_SECONDS, HEAD)]

    async def close_circuit(self, task: str) -> None:
        """Forgets the failures of a task, so that its runs start again."""
        await self._database.execute(self._queries["close_circuit"], task=task)

    async def list_circuits(self) -> list[CircuitState]:
        return [CircuitState(*row) for row in await self._database.fetch(self._queries["list_circuits"])]
