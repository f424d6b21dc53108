"""Workers and the tasks they announce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.namespace import Namespace, bare
from foliot.model.run import Cancel
from foliot.store import queries
from foliot.store.arrays import columns
from foliot.store.postgres import Database

RUNS_MAX = 2000
decode_json = msgspec.json.Decoder().decode
decode_tags = msgspec.json.Decoder(tuple[str, ...]).decode
decode_cancel = msgspec.json.Decoder(Cancel).decode

# The part of its lease after which a silent worker is late. A worker renews its lease three times in that time.
LATE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Beat:
    is_renewed: bool
    """False if this worker was removed."""
    to_end: dict[tuple[UUID, int], Cancel | None]
    """Attempts that must end. None if the run no longer belongs to this worker."""
    is_draining: bool = False
    limited_queues: frozenset[str] = frozenset()
    owns_unheld: bool = False
    """The worker owns a run that it does not hold, because the answer to a claim is delayed or lost."""
    lease_seconds: float | None = None
    """How long the worker may trust the lease. None: `worker_ttl_seconds`."""
    next_seconds: float | None = None
    """When to beat again. None: after `worker_beat_seconds`."""


@dataclass(frozen=True, slots=True)
class CoordinatedLease:
    """A lease that ends early when the coordinator loses an entry."""

    session_id: UUID
    session_seconds: float
    """How long the worker trusts the entry after it has seen it."""
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class RemoteBeat:
    """The heartbeat of one worker that works through the API."""

    worker_id: UUID
    lease_seconds: float
    held: Sequence[tuple[UUID, int]] = ()
    left_running: int = 0


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


@dataclass(frozen=True, slots=True)
class WorkerRun:
    """A run in a slot of a worker."""

    id: UUID
    name: str | None
    task: str
    queue: str
    attempt: int
    started_at: datetime


class DeclaredTask(msgspec.Struct, frozen=True):
    """Defaults that a task declares for its jobs. The other defaults are known only to the worker."""

    queue: str
    tags: tuple[str, ...] | None = None
    announcement: str | None = None
    """The hash of the latest announcement."""


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
        announcement: str | None = None,
        token_id: str | None = None,
    ) -> None:
        """`announcement` is the hash of what its app says about its tasks. `token_id`: the token of a worker that works
        through the API."""
        encoded, encoded_labels = msgspec.json.encode(queues).decode(), msgspec.json.encode(labels or {}).decode()
        now = self._database.clock.sql_now()
        await self._database.execute(
            self._queries["register_worker"],
            worker_id=worker_id,
            name=name,
            queues=encoded,
            tasks=tasks,
            ttl_seconds=self._ttl,
            now=now,
            labels=encoded_labels,
            announcement=announcement,
            token_id=token_id,
        )

    async def announce_tasks(
        self,
        queue_of_task: Mapping[str, str],
        guarantees: Mapping[str, str | None] | None = None,
        tags: Mapping[str, Sequence[str]] | None = None,
        announcement: str | None = None,
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
            announcement=announcement,
            now=self._database.clock.sql_now(),
        )

    async def list_tasks(self, namespace: Namespace) -> dict[str, DeclaredTask]:
        """Returns what each task of a namespace declares, by bare names."""
        rows = await self._database.fetch(self._queries["list_tasks"])
        return {
            bare(row[0]): DeclaredTask(bare(row[1]), decode_tags(row[2]) if row[2] else None, row[3])
            for row in rows
            if namespace.owns(row[0])
        }

    async def beat(
        self,
        worker_id: UUID,
        held: Sequence[tuple[UUID, int]],
        left_running: int = 0,
        *,
        coordinated: CoordinatedLease | None = None,
    ) -> Beat:
        """Renews the lease.

        `held` lists the run and the token of each attempt whose outcome may not be stored yet. `left_running` is the
        number of slots occupied by attempts that have ended.
        """
        seconds, session = self._ttl, (None, None)
        if coordinated is not None:
            seconds = coordinated.lease_seconds
            session = (coordinated.session_id, coordinated.session_seconds)  # type: ignore[assignment]
        arguments = (worker_id, seconds, self._database.clock.sql_now(), *columns(held, 2), left_running, *session)
        return beat_of(await self._database.fetch(self._queries["beat"], *arguments))

    async def look(self, worker_id: UUID, held: Sequence[tuple[UUID, int]], session_id: UUID) -> Beat:
        """The answer to a heartbeat, without a renewal."""
        arguments = (worker_id, self._database.clock.sql_now(), *columns(held, 2), session_id)
        return beat_of(await self._database.fetch(self._queries["look"], *arguments))

    async def worker_sessions(self) -> dict[UUID, float]:
        """The entries in the coordinator on which workers rely, and for how long after having seen them."""
        return {row[0]: row[1] for row in await self._database.fetch(self._queries["worker_sessions"])}

    async def end_sessions(self, session_ids: Sequence[UUID]) -> int:
        """Ends the leases of the workers that relied on these entries. Returns their number."""
        return await self._database.execute(
            self._queries["end_sessions"], session_ids=session_ids, now=self._database.clock.sql_now()
        )

    async def beat_workers(self, beats: Sequence[RemoteBeat]) -> dict[UUID, Beat]:
        """Renews the leases of several workers. Workers that were removed are missing in the answer, and so are
        `limited_queues`."""
        held = [(one.worker_id, run_id, token) for one in beats for run_id, token in one.held]
        rows = await self._database.fetch(
            self._queries["beat_workers"],
            *columns([(one.worker_id, one.lease_seconds, one.left_running) for one in beats], 3),
            *columns(held, 3),
            self._database.clock.sql_now(),
        )
        to_end: dict[UUID, dict[tuple[UUID, int], Cancel | None]] = {}
        for row in rows:
            if row[1] is not None:
                to_end.setdefault(row[0], {})[row[1], row[2]] = decode_cancel(row[3]) if row[3] else None
        return {
            row[0]: Beat(True, to_end.get(row[0], {}), row[4], owns_unheld=row[5]) for row in rows if row[1] is None
        }

    async def holder_of(self, worker_id: UUID) -> tuple[str | None] | None:
        """The id of the token that a worker was registered with; `(None,)` for a worker with database access. None:
        there is no such worker."""
        row = await self._database.fetch_row(self._queries["holder_of"], worker_id=worker_id)
        return None if row is None else (row[0],)

    async def limited_queues(self) -> frozenset[str]:
        return frozenset(row[0] for row in await self._database.fetch(self._queries["limited_queues"]))

    async def remove_worker(self, worker_id: UUID) -> None:
        await self._database.execute(
            self._queries["remove_worker"], worker_id=worker_id, now=self._database.clock.sql_now()
        )

    async def shorten_leases(self) -> float | None:
        """Returns by how many seconds the database's clock was set back, or None if no lease shows it."""
        ahead: float | None = await self._database.fetch_value(
            self._queries["shorten_leases"], now=self._database.clock.sql_now()
        )
        return ahead

    async def remove_dead_workers(self) -> int:
        return await self._database.execute(self._queries["remove_dead_workers"], now=self._database.clock.sql_now())

    async def list_workers(self, namespace: Namespace, worker_id: UUID | None = None) -> list[WorkerView]:
        """Lists the live workers, or one worker, that serve a queue of the namespace. Names are bare."""
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
        """Returns False if no such worker is live."""
        return bool(
            await self._database.execute(
                self._queries["drain_worker"], worker_id=worker_id, now=self._database.clock.sql_now()
            )
        )

    async def drain_workers(self, worker_ids: Sequence[UUID]) -> None:
        await self._database.execute(
            self._queries["drain_workers"], worker_ids=worker_ids, now=self._database.clock.sql_now()
        )

    async def runs_of_workers(self, namespace: Namespace, worker_ids: Sequence[UUID]) -> dict[UUID, list[WorkerRun]]:
        """Lists the runs in their slots, by worker, up to `RUNS_MAX` runs in all. Runs of other namespaces are left
        out."""
        rows = await self._database.fetch(
            self._queries["runs_of_workers"], worker_ids=worker_ids, namespace=namespace.name, limit=RUNS_MAX
        )
        found: dict[UUID, list[WorkerRun]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(WorkerRun(row[1], row[2], bare(row[3]), bare(row[4]), *row[5:]))
        return found


def beat_of(rows: Sequence[Sequence[Any]]) -> Beat:
    to_end = {(row[1], row[2]): decode_cancel(row[3]) if row[3] else None for row in rows if row[1] is not None}
    return Beat(rows[0][0], to_end, rows[0][4], frozenset(rows[0][5]), rows[0][6])
