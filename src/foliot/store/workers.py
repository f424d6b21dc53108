"""Workers and the tasks they announce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.namespace import Namespace, bare
from foliot.model.run import Cancel
from foliot.store import queries
from foliot.store.arrays import columns
from foliot.store.postgres import Database

decode_json = msgspec.json.Decoder().decode
decode_tags = msgspec.json.Decoder(tuple[str, ...]).decode
decode_cancel = msgspec.json.Decoder(Cancel).decode


@dataclass(frozen=True, slots=True)
class Beat:
    is_renewed: bool
    """False: this worker has been struck off."""
    to_end: dict[tuple[UUID, int], Cancel | None]
    """Attempts that must end; None where the run is no longer this worker's."""
    is_draining: bool = False
    limited_queues: frozenset[str] = frozenset()
    owns_unheld: bool = False
    """The worker owns a run that it does not hold: the answer to a claim is still on its way, or got lost."""


@dataclass(frozen=True, slots=True)
class WorkerView:
    id: UUID
    name: str
    queues: dict[str, int]
    tasks: list[str]
    labels: dict[str, str]
    started_at: datetime
    beat_at: datetime
    draining_at: datetime | None
    running: int
    left_running: int
    silent_seconds: float
    ttl_seconds: float


class DeclaredTask(msgspec.Struct, frozen=True):
    """What a task says of its jobs in code, for those that say nothing of it themselves. The worker knows the rest."""

    queue: str
    tags: tuple[str, ...] | None = None


class Workers:
    def __init__(self, database: Database, *, ttl_seconds: float) -> None:
        self._database = database
        self._ttl = float(ttl_seconds)
        self._queries = queries.load("workers")

    async def register_worker(
        self,
        worker_id: UUID,
        name: str,
        queues: Mapping[str, int],
        tasks: Sequence[str],
        labels: Mapping[str, str] | None = None,
    ) -> None:
        encoded, said = msgspec.json.encode(queues).decode(), msgspec.json.encode(labels or {}).decode()
        now = self._database.clock.sql_now()
        await self._database.execute(
            self._queries["register_worker"],
            worker_id=worker_id,
            name=name,
            queues=encoded,
            tasks=tasks,
            ttl_seconds=self._ttl,
            now=now,
            labels=said,
        )

    async def announce_tasks(
        self,
        queue_of_task: Mapping[str, str],
        guarantees: Mapping[str, str | None] | None = None,
        tags: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        promised = [(guarantees or {}).get(task) for task in queue_of_task]
        tagged = [
            msgspec.json.encode(found).decode() if (found := (tags or {}).get(task)) else None for task in queue_of_task
        ]
        await self._database.execute(
            self._queries["announce_tasks"],
            names=list(queue_of_task),
            queues=list(queue_of_task.values()),
            guarantees=promised,
            tags=tagged,
            now=self._database.clock.sql_now(),
        )

    async def list_tasks(self, namespace: Namespace) -> dict[str, DeclaredTask]:
        """What each task known in a namespace declares, all by their bare names."""
        rows = await self._database.fetch(self._queries["list_tasks"])
        return {
            bare(row[0]): DeclaredTask(bare(row[1]), decode_tags(row[2]) if row[2] else None)
            for row in rows
            if namespace.owns(row[0])
        }

    async def beat(self, worker_id: UUID, held: Sequence[tuple[UUID, int]], left_running: int = 0) -> Beat:
        """`held`: run and token of each attempt whose end is not known to be stored.

        `left_running`: how many slots are taken by attempts that have ended.
        """
        arguments = (worker_id, self._ttl, self._database.clock.sql_now(), *columns(held, 2), left_running)
        rows = await self._database.fetch(self._queries["beat"], *arguments)
        to_end = {(row[1], row[2]): decode_cancel(row[3]) if row[3] else None for row in rows if row[1] is not None}
        return Beat(rows[0][0], to_end, rows[0][4], frozenset(rows[0][5]), rows[0][6])

    async def remove_worker(self, worker_id: UUID) -> None:
        await self._database.execute(self._queries["remove_worker"], worker_id=worker_id)

    async def shorten_leases(self) -> float | None:
        """By how many seconds the database's clock was set back, when leases show that it was."""
        ahead: float | None = await self._database.fetch_value(
            self._queries["shorten_leases"], now=self._database.clock.sql_now()
        )
        return ahead

    async def remove_dead_workers(self) -> int:
        return await self._database.execute(self._queries["remove_dead_workers"], now=self._database.clock.sql_now())

    async def list_workers(self, namespace: Namespace, worker_id: UUID | None = None) -> list[WorkerView]:
        """Those that live and serve a queue of the namespace; or one of them. Names are bare."""
        rows = await self._database.fetch(
            self._queries["list_workers"], now=self._database.clock.sql_now(), worker_id=worker_id
        )
        found = []
        for row in rows:
            queues = {bare(name): slots for name, slots in decode_json(row[2]).items() if namespace.owns(name)}
            tasks = [bare(name) for name in row[3] if namespace.owns(name)]
            if queues:
                found.append(WorkerView(row[0], row[1], queues, tasks, decode_json(row[4]), *row[5:]))
        return found

    async def drain_worker(self, worker_id: UUID) -> bool:
        """False when no such worker lives."""
        return bool(
            await self._database.execute(
                self._queries["drain_worker"], worker_id=worker_id, now=self._database.clock.sql_now()
            )
        )
