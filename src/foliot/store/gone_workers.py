"""Workers that have left or died within a day, and the attempts that were lost with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.namespace import Namespace, bare
from foliot.store import queries
from foliot.store.postgres import Database

SCAN_MAX = 500
BATCH = 1000
decode_json = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class GoneWorker:
    id: UUID
    name: str
    queues: Mapping[str, int]
    labels: Mapping[str, str]
    started_at: datetime
    gone_at: datetime
    is_dead: bool
    """It died: its lease expired. Otherwise it shut down."""
    lost: int
    """Attempts that were lost with it, in all namespaces."""
    lost_runs: Sequence[UUID]
    """The first hundred of their runs."""


class GoneWorkers:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("gone_workers")

    async def list_gone_workers(self, namespace: Namespace, worker_id: UUID | None = None) -> list[GoneWorker]:
        """The latest ones that served a queue of the namespace, or one of them."""
        rows = await self._database.fetch(self._queries["list_gone_workers"], worker_id=worker_id, limit=SCAN_MAX)
        found = []
        for row in rows:
            queues = {bare(name): slots for name, slots in decode_json(row[2]).items() if namespace.owns(name)}
            if queues:
                found.append(GoneWorker(row[0], row[1], queues, decode_json(row[3]), *row[4:]))
        return found

    async def forget_gone_workers(self) -> int:
        return await self._database.execute(
            self._queries["forget_gone_workers"], limit=BATCH, now=self._database.clock.sql_now()
        )
