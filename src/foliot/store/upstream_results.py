"""Reads the results of the runs before a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database

UPSTREAM_MAX_BYTES = 16_777_216
"""The largest total size of the results that a step can receive."""


@dataclass(frozen=True, slots=True)
class Upstream:
    key: str
    state: RunState
    result: str | None
    """JSON text."""


@dataclass(frozen=True, slots=True)
class Before:
    """The runs before a run, and the signal that released it."""

    upstream: Sequence[Upstream] = ()
    signal: str | None = None
    """JSON text."""
    bytes: int = 0
    """The size of all results together."""


class UpstreamResults:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("upstream_results")

    async def read_upstream(self, run_ids: Sequence[UUID], max_bytes: int) -> dict[UUID, Before]:
        """Returns the ended upstream runs and the signal of each of these live runs. Results that are larger than
        `max_bytes` together are left out."""
        found: dict[UUID, list[Upstream]] = {}
        signals: dict[UUID, tuple[str | None, int]] = {}
        for row in await self._database.fetch(self._queries["read_upstream"], run_ids=run_ids, max_bytes=max_bytes):
            before = found.setdefault(row[0], [])
            signals[row[0]] = row[1], int(row[5] or 0)
            if row[2] is not None:
                before.append(Upstream(row[2], RunState(row[3]), row[4]))
        return {run_id: Before(before, *signals[run_id]) for run_id, before in found.items()}
