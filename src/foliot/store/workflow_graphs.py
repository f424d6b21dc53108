"""Shows workflows as pictures: the states of their steps, and the steps of many runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.model.ids import CLOCK_TOLERANCE
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database
from foliot.store.workflow_lists import Parent, WorkflowItem, workflow_of

# A row in history becomes visible when its transaction commits: at most this long after the end that it states.
COMMIT_MAX = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Separates the rows that an answer has seen from those that came after it."""

    seen: str
    """The first transaction that had not ended when the answer was read."""
    at: datetime


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """How many children of a nested workflow or map there are, by outcome."""

    total: int
    unfinished: int
    succeeded: int
    failed: int
    cancelled: int
    skipped: int


@dataclass(frozen=True, slots=True)
class StepState:
    """The latest run of a step, without its data."""

    id: UUID
    step: str
    state: RunState
    reason: str | None
    held_by: str | None
    attempt: int
    created_at: datetime
    due_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    children: ItemCounts | None


@dataclass(frozen=True, slots=True)
class Cells:
    """The steps of one workflow in a grid. All three have the same order."""

    steps: list[str]
    states: list[str]
    seconds: list[float | None]


class WorkflowGraphs:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("workflow_graphs")

    async def get_progress(self, namespace: Namespace, reference: UUID) -> WorkflowItem | None:
        row = await self._database.fetch_row(
            self._queries["get_progress"], reference=reference, namespace=namespace.name
        )
        return workflow_of(list(row)) if row else None

    async def list_changed_steps(self, parent: Parent, cursor: Cursor | None) -> tuple[list[StepState], Cursor, bool]:
        """The steps that have changed since the answer that the cursor came with; the cursor of this answer; and
        whether these are all steps, because there was no cursor or it is too old. A step may come again although it
        has not changed."""
        since = parent.created_at - CLOCK_TOLERANCE
        rows = await self._database.fetch(
            self._queries["list_changed_steps"],
            parent_id=parent.id,
            since=since if cursor is None else max(since, cursor.at - COMMIT_MAX),
            seen=None if cursor is None else cursor.seen,
            now=self._database.clock.sql_now(),
        )
        if cursor is not None and not rows[0]["is_known"]:
            return await self.list_changed_steps(parent, None)
        found = [_step(list(row)[3:]) for row in rows if row["id"] is not None]
        return found, Cursor(rows[0]["seen"], rows[0]["at"]), cursor is None

    async def list_cells(self, parents: Sequence[Parent]) -> dict[UUID, Cells]:
        """The states of the steps of each workflow, by its id."""
        if not parents:
            return {}
        rows = await self._database.fetch(
            self._queries["list_cells"],
            parent_ids=[parent.id for parent in parents],
            since=min(parent.created_at for parent in parents) - CLOCK_TOLERANCE,
        )
        return {row["parent_id"]: Cells(row["steps"], row["states"], row["seconds"]) for row in rows}


def _step(values: list[Any]) -> StepState:
    *own, children_of, total, unfinished, succeeded, failed, cancelled, skipped = values
    own[2] = RunState(own[2])
    counts = ItemCounts(total, unfinished, succeeded, failed, cancelled, skipped)
    own.append(None if children_of is None else counts)
    return StepState(*own)
