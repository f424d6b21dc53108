"""Runs that wait for a signal, as people see them who decide."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.checkpoints import decode_json
from foliot.store.postgres import Database
from foliot.store.run_lists import Page, page_of

PAYLOAD_MAX = 20_000


@dataclass(frozen=True, slots=True)
class Approval:
    id: UUID
    name: str | None
    task: str
    queue: str
    created_at: datetime
    since: datetime | None
    until: datetime | None
    signals: list[str] | None
    """The names that a durable function waits for."""
    payload: Any
    """None if it is larger than `PAYLOAD_MAX`."""
    payload_bytes: int | None
    metadata: Any
    tags: list[str] | None
    parent_id: UUID | None
    step: str | None
    job_id: UUID | None
    workflow: str | None
    """The name of the workflow that it is a step of."""


class Approvals:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("approvals")

    async def list_approvals(self, namespace: Namespace, after: UUID, *, limit: int, scan: int) -> Page[Approval, UUID]:
        """Oldest first. Looks at `scan` waiting runs at most, of any namespace."""
        rows = await self._database.fetch(
            self._queries["list_approvals"],
            after=after,
            scan=scan,
            limit=limit + 1,
            namespace=namespace.name,
            payload_max=PAYLOAD_MAX,
        )
        items = [_approval(list(row)[2:]) for row in rows if row["id"] is not None]
        return page_of(items, limit, lambda item: item.id, rows[0]["last_id"] if rows[0]["count"] >= scan else None)


def _approval(values: list[Any]) -> Approval:
    for place in (7, 8, 10, 11):
        values[place] = None if values[place] is None else decode_json(values[place])
    return Approval(*values)
