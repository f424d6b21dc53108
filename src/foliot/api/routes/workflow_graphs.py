"""`/v1/workflows/{id}/graph`, `/states` and `/v1/workflows/grid`: workflows as pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from foliot.api.openapi.operations import described
from foliot.api.requests.etags import Version, tagged
from foliot.api.requests.idempotency import answered
from foliot.api.requests.pages import at_most
from foliot.api.requests.parameters import id_of, text_of
from foliot.api.security.permissions import PermissionRoute, Within, requires
from foliot.api.workflow_views import WorkflowListed, find_workflow, listed
from foliot.errors import Invalid
from foliot.model.namespace import Namespace
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.roles import Permission
from foliot.model.run import RunView
from foliot.model.workflow import Step, Workflow
from foliot.store.lookup import find_run
from foliot.store.store import Store
from foliot.store.workflow_graphs import Cells, Cursor, ItemCounts, StepState
from foliot.store.workflow_lists import Parent, WorkflowItem

# The form of the graph. A new number makes browsers fetch graphs again.
GRAPH_FORM = 1
CURSOR = re.compile(r"(\d{1,18})\.(\d{1,11})", re.ASCII)
LAST_ID = UUID(int=(1 << 128) - 1)
# The workflows that a page of a grid reads at most, each with its run.
SCAN_MAX = 2_000
RUNS_MAX = 50
CELLS_MAX = 200_000
"""A page of a grid has fewer runs if the workflow has very many steps."""


class GraphStep(msgspec.Struct, frozen=True, omit_defaults=True):
    key: str
    task: str
    """Of a map: the task of its items."""
    after: list[int] = []
    """The places of the steps that it waits for."""
    rule: str = "all_success"
    when: str | None = None
    """Its condition."""
    queue: str | None = None
    is_map: bool = False
    is_workflow: bool = False
    is_teardown: bool = False
    """Without `after`, it waits for all steps that are no teardown."""
    awaits_signal: bool = False


class WorkflowGraph(msgspec.Struct, frozen=True):
    """The part of a workflow that never changes."""

    id: UUID
    steps: list[GraphStep]


class StepNow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The latest run of a step."""

    key: str
    id: UUID
    state: str
    attempt: int
    created_at: datetime
    due_at: datetime
    reason: str | None = None
    held_by: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str | None = None
    """The beginning of the error's message."""
    children: ItemCounts | None = None
    """Of a nested workflow or map."""


class WorkflowStates(msgspec.Struct, frozen=True):
    workflow: WorkflowListed
    steps: list[StepNow]
    """Steps without a run are missing: they wait, or the workflow has not begun."""
    cursor: str
    """Pass it as `since` to get only what has changed."""
    is_whole: bool
    """These are all steps, not only changes: replace what you have."""


class GridRun(WorkflowListed, frozen=True, kw_only=True):
    states: list[str | None]
    """Of each step of the page. Null: this run did not have the step."""
    seconds: list[float | None]
    """How long each step took."""


class WorkflowGrid(msgspec.Struct, frozen=True):
    steps: list[str]
    """The keys of the steps, in the order of the latest definition; after them, steps that only older ones had."""
    runs: list[GridRun]
    """Latest first."""
    next: str | None
    """Pass it as `after` to get older runs. A short or empty page may have a next one."""


class WorkflowGraphRoutes:
    def __init__(self, *, store: Store) -> None:
        self._store = store
        self.router = APIRouter(tags=["workflows"], route_class=PermissionRoute)
        add = self.router.add_api_route
        grids = described(200, WorkflowGrid, problems=(422, 503))
        add("/v1/workflows/grid", self.get_workflow_grid, methods=["GET"], openapi_extra=grids)
        graphs = described(200, WorkflowGraph, problems=(404, 503), tagged=True)
        add("/v1/workflows/{reference}/graph", self.get_workflow_graph, methods=["GET"], openapi_extra=graphs)
        states = described(200, WorkflowStates, problems=(404, 422, 503))
        add("/v1/workflows/{reference}/states", self.get_workflow_states, methods=["GET"], openapi_extra=states)

    @requires(Permission.VIEW)
    async def get_workflow_graph(self, reference: str, request: Request, namespace: Within) -> Response:
        """Shows the steps of a workflow and what they wait for. It never changes, so ask once; `/states` tells what
        the steps do."""
        parent, run = await find_workflow(self._store, namespace, reference)
        graph = WorkflowGraph(parent.id, graph_steps(definition_in(run).steps))
        return tagged(request, graph, Version(GRAPH_FORM, parent.created_at))

    @requires(Permission.VIEW)
    async def get_workflow_states(self, reference: str, namespace: Within, since: str = "") -> Response:
        """Shows the states of the steps of a workflow, with times but without results. With `since`, the cursor of an
        earlier answer, only of those that have changed since."""
        cursor = cursor_of(since) if since else None
        item = await self._find(namespace, reference)
        steps, following, is_whole = await self._store.workflow_graphs.list_changed_steps(item.parent, cursor)
        return answered(
            WorkflowStates(listed(item), [step_now(step) for step in steps], text_of_cursor(following), is_whole)
        )

    @requires(Permission.VIEW)
    async def get_workflow_grid(self, namespace: Within, name: str, after: str = "", limit: int = RUNS_MAX) -> Response:
        """Shows the steps of the runs of a workflow side by side, latest run first. `name` is the name of a workflow,
        or of a recurring job."""
        limit = at_most(limit, RUNS_MAX, "limit")
        before = id_of(after, "after") if after else LAST_ID
        text_of(name, "name")
        page = await self._store.workflow_lists.list_workflows(
            namespace, before, None, name, limit=limit, scan=SCAN_MAX
        )
        items, following = page.items, page.following
        if (fitting := fit(items)) < len(items):
            items = items[:fitting]
            following = items[-1].parent.id
        cells = await self._store.workflow_graphs.list_cells([item.parent for item in items])
        first = [] if not items else await self._keys(namespace, items[0].parent)
        steps = step_order(first, [cells[item.parent.id] for item in items if item.parent.id in cells])
        runs = [grid_run(item, cells.get(item.parent.id), steps) for item in items]
        return answered(WorkflowGrid(steps, runs, str(following) if following else None))

    async def _find(self, namespace: Namespace, reference: str) -> WorkflowItem:
        """Without its definition, unless it has not begun or the id is that of an earlier run. Raises `NotFound`."""
        try:
            item = await self._store.workflow_graphs.get_progress(namespace, UUID(reference))
        except ValueError:
            item = None
        if item is not None:
            return item
        parent, run = await find_workflow(self._store, namespace, reference)
        return WorkflowItem(parent, run.name, run.state, run.reason, run.error, run.job_id, run.tick_at)

    async def _keys(self, namespace: Namespace, parent: Parent) -> list[str]:
        run = await find_run(self._store, namespace, parent.run_id)
        return [] if run is None else [step.key for step in definition_in(run).steps]


def definition_in(run: RunView) -> Workflow:
    """As it was accepted: without checking it again."""
    return msgspec.convert(run.payload, Workflow)


def graph_steps(steps: Sequence[Step]) -> list[GraphStep]:
    places = {step.key: place for place, step in enumerate(steps)}
    others = {step.key for step in steps if not step.teardown}
    return [
        GraphStep(
            key=step.key,
            task=step.task_name(),
            # A teardown that waits for all others was stored with an arrow from each of them.
            after=[] if step.teardown and set(step.after) == others else [places[key] for key in step.after],
            rule=step.needs,
            when=step.when,
            queue=step.queue,
            is_map=step.map is not None,
            is_workflow=step.map is None and step.task_name() == WORKFLOW_TASK,
            is_teardown=step.teardown,
            awaits_signal=step.signal is not None,
        )
        for step in steps
    ]


def step_now(step: StepState) -> StepNow:
    return StepNow(
        key=step.step,
        id=step.id,
        state=step.state,
        attempt=step.attempt,
        created_at=step.created_at,
        due_at=step.due_at,
        reason=step.reason,
        held_by=step.held_by,
        started_at=step.started_at,
        finished_at=step.finished_at,
        error=step.error,
        children=step.children,
    )


def cursor_of(text: str) -> Cursor:
    """Raises `Invalid`."""
    found = CURSOR.fullmatch(text)
    if found is None:
        raise Invalid("since: give the `cursor` of an earlier answer", field="since")
    return Cursor(found[1], datetime.fromtimestamp(int(found[2]), UTC))


def text_of_cursor(cursor: Cursor) -> str:
    return f"{cursor.seen}.{int(cursor.at.timestamp())}"


def fit(items: Sequence[WorkflowItem]) -> int:
    """How many runs a page holds without too many cells; at least one."""
    cells = 0
    for number, item in enumerate(items):
        cells += item.parent.total
        if cells > CELLS_MAX and number > 0:
            return number
    return len(items)


def step_order(first: Sequence[str], others: Iterable[Cells]) -> list[str]:
    order = dict.fromkeys(first)
    for cells in others:
        order |= dict.fromkeys(cells.steps)
    return list(order)


def grid_run(item: WorkflowItem, cells: Cells | None, steps: Sequence[str]) -> GridRun:
    states = {} if cells is None else dict(zip(cells.steps, cells.states, strict=True))
    seconds = {} if cells is None else dict(zip(cells.steps, cells.seconds, strict=True))
    return GridRun(
        **msgspec.structs.asdict(listed(item)),
        states=[states.get(step) for step in steps],
        seconds=[seconds.get(step) for step in steps],
    )
