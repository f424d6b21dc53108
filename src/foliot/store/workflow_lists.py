"""Shows workflows, maps and their children."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.model.ids import CLOCK_TOLERANCE
from foliot.model.map import OnFailure
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database, Record, Transaction
from foliot.store.run_lists import Page, page_of

ParentKind = Literal["workflow", "map"]


@dataclass(frozen=True, slots=True)
class Parent:
    """The progress of a workflow or a map."""

    id: UUID
    run_id: UUID
    """Its latest run."""
    kind: ParentKind
    on_failure: OnFailure
    total: int
    next_index: int
    unfinished: int
    succeeded: int
    failed: int
    cancelled: int
    skipped: int
    created_at: datetime
    finished_at: datetime | None


PARENT_FIELDS = len(fields(Parent))


@dataclass(frozen=True, slots=True)
class WorkflowItem:
    """A workflow in a list."""

    parent: Parent
    name: str | None
    state: RunState
    reason: str | None
    error: Any
    job_id: UUID | None
    tick_at: datetime | None


@dataclass(frozen=True, slots=True)
class Child:
    """The latest run of a step or an item."""

    id: UUID
    step: str
    task: str
    queue: str
    state: RunState
    reason: str | None
    attempt: int
    upstream: list[UUID] | None
    result: Any
    error: Any
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    rerun_of: UUID | None
    rule: str | None
    unmet: int | None
    held_by: str | None
    children: Any
    """For a nested workflow or map: the number of its children in each state."""


class WorkflowLists:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("workflow_lists")

    async def get_parent(self, run_id: UUID, *, within: Transaction | None = None) -> Parent | None:
        row = await (within or self._database).fetch_row(self._queries["get_parent"], run_id=run_id)
        return Parent(*row) if row else None

    async def list_workflows(
        self,
        namespace: Namespace,
        before: UUID,
        states: Sequence[str] | None,
        name: str | None,
        *,
        limit: int,
        scan: int,
    ) -> Page[WorkflowItem, UUID]:
        """`name` is the name of a workflow, or of a recurring job."""
        rows = await self._database.fetch(
            self._queries["list_workflows"],
            before=before,
            scan=scan,
            states=states,
            name=name,
            limit=limit + 1,
            namespace=namespace.name,
            qualified_name=None if name is None else namespace.qualified(name),
        )
        items = [workflow_of(list(row)[2:]) for row in rows if row[2] is not None]
        return page_of(items, limit, lambda item: item.parent.id, rows[0][1] if rows[0][0] >= scan else None)

    async def list_children(self, parent: Parent, limit: int, *, within: Transaction | None = None) -> list[Child]:
        return [
            _child(row)
            for row in await (within or self._database).fetch(
                self._queries["list_children"],
                parent_id=parent.id,
                since=parent.created_at - CLOCK_TOLERANCE,
                limit=limit,
            )
        ]


def workflow_of(values: list[Any]) -> WorkflowItem:
    """From the columns of its parent, followed by those of its run."""
    name, state, reason, error, job_id, tick_at = values[PARENT_FIELDS:]
    error = None if error is None else msgspec.Raw(error)
    return WorkflowItem(Parent(*values[:PARENT_FIELDS]), name, RunState(state), reason, error, job_id, tick_at)


def _child(row: Record) -> Child:
    values = dict(row)
    values["state"] = RunState(values["state"])
    for name in ("result", "error", "children"):
        values[name] = None if values[name] is None else msgspec.Raw(values[name])
    return Child(**values)
