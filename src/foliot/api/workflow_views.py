"""Workflows and their steps as the API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.api.openapi.schemas import run_name
from foliot.config import did_you_mean
from foliot.errors import Invalid, NotFound
from foliot.model.namespace import Namespace, bare
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.run import RunView
from foliot.model.states import LIVE, TERMINAL, RunState, status_of
from foliot.model.workflow import STEPS_MAX, Step, Workflow, check
from foliot.store.lookup import find_run
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.store.workflow_lists import Child, Parent, WorkflowItem

WORDS = {
    "running": tuple(LIVE),
    "completed": ("succeeded",),
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}


class StepShown(msgspec.Struct, frozen=True):
    key: str
    id: UUID | None
    task: str
    queue: str | None
    status: str
    state: str
    reason: str | None
    held_by: str | None
    """The reason why the step waits although it is due: signal, condition, limit, pause, circuit or no_worker."""
    after: list[str]
    rule: str
    when: str | None
    """The condition of the step."""
    attempt: int
    scheduled_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    result: Any
    error: Any
    children: Any


class WorkflowProgress(msgspec.Struct, frozen=True):
    """The number of steps by outcome. `share` is the finished part, from 0 to 1."""

    share: float
    total: int
    unfinished: int
    succeeded: int
    failed: int
    cancelled: int
    skipped: int


class WorkflowListed(msgspec.Struct, frozen=True, kw_only=True):
    id: UUID
    run_id: UUID
    """The workflow's latest run: a redrive makes a new one."""
    name: str | None
    status: str
    state: str
    reason: str | None
    on_failure: str
    progress: WorkflowProgress
    created_at: datetime
    finished_at: datetime | None
    error: Any
    job_id: UUID | None
    tick_at: datetime | None


class WorkflowShown(WorkflowListed, frozen=True, kw_only=True):
    steps: list[StepShown]
    parameters: dict[str, dict[str, Any]]
    """A JSON Schema for each parameter."""
    params: dict[str, Any]
    """The value of each parameter."""
    created: bool = False


class WorkflowPage(msgspec.Struct, frozen=True):
    items: list[WorkflowListed]
    next: str | None
    """Pass it as `after` to get the next page. A short or empty page may have a next one."""


class WorkflowCreated(msgspec.Struct, frozen=True):
    id: UUID
    name: str | None
    status: str
    state: str
    task: str
    queue: str
    priority: int
    steps: dict[str, UUID]
    """The run of each step."""
    created: bool


def states_of(word: str) -> tuple[str, ...]:
    """The states that a status covers."""
    if word not in WORDS:
        hint = (
            did_you_mean(word, list(WORDS))
            or f"; there are {', '.join(known for known in WORDS if known != 'succeeded')}"
        )
        raise Invalid(f"state: there is no state {word!r} of workflows{hint}", field="state")
    return WORDS[word]


def listed(item: WorkflowItem) -> WorkflowListed:
    parent = item.parent
    return WorkflowListed(
        id=parent.id,
        run_id=parent.run_id,
        name=run_name(item.name, item.job_id),
        status=status_word(item.state),
        state=item.state,
        reason=item.reason,
        on_failure=parent.on_failure,
        progress=progress_of(parent),
        created_at=parent.created_at,
        finished_at=parent.finished_at,
        error=item.error,
        job_id=item.job_id,
        tick_at=item.tick_at,
    )


def status_word(state: RunState) -> str:
    return status_of(state, 0) if state in TERMINAL else "running"


def progress_of(parent: Parent) -> WorkflowProgress:
    return WorkflowProgress(
        share=(parent.total - parent.unfinished) / max(1, parent.total),
        total=parent.total,
        unfinished=parent.unfinished,
        succeeded=parent.succeeded,
        failed=parent.failed,
        cancelled=parent.cancelled,
        skipped=parent.skipped,
    )


def not_begun(run: RunView) -> Parent:
    """The parent of a workflow that has not started. Raises `NotFound` for a run that is no workflow, which only SQL
    can store."""
    try:
        definition = msgspec.convert(run.payload, Workflow)
        check(definition)
    except (msgspec.ValidationError, Invalid) as error:
        raise NotFound(f"the run {run.id} is no workflow: {error}") from None
    number = len(definition.steps)
    return Parent(
        run.id,
        run.id,
        "workflow",
        definition.on_failure,
        number,
        0,
        number,
        0,
        0,
        0,
        0,
        run.created_at,
        run.finished_at,
    )


def definition_of(run: RunView) -> Workflow:
    """The definition of a workflow, with all dependencies of teardown steps."""
    definition = msgspec.convert(run.payload, Workflow)
    return msgspec.structs.replace(definition, steps=check(definition))


def step_shown(step: Step, child: Child) -> StepShown:
    return StepShown(
        key=step.key,
        id=child.id,
        task=step.task_name(),
        queue=bare(child.queue),
        status="running"
        if child.children is not None and child.state not in TERMINAL
        else status_of(child.state, child.attempt),
        state=child.state,
        reason=child.reason,
        held_by=child.held_by,
        after=list(step.after),
        rule=step.needs,
        when=step.when,
        attempt=child.attempt,
        scheduled_at=child.due_at if child.state is RunState.SCHEDULED else None,
        started_at=child.started_at,
        finished_at=child.finished_at,
        result=child.result,
        error=child.error,
        children=child.children,
    )


def planned_shown(step: Step, run: RunView) -> StepShown:
    """A step of a workflow that has not started."""
    state = run.state if run.state in TERMINAL else RunState.WAITING
    return StepShown(
        key=step.key,
        id=None,
        task=step.task_name(),
        queue=step.queue,
        status=status_of(state, 0),
        state=state,
        reason=run.reason,
        held_by=None,
        after=list(step.after),
        rule=step.needs,
        when=step.when,
        attempt=0,
        scheduled_at=None,
        started_at=None,
        finished_at=None,
        result=None,
        error=None,
        children=None,
    )


async def find_workflow(
    store: Store, namespace: Namespace, reference: str, within: Transaction | None = None
) -> tuple[Parent, RunView]:
    """Finds a workflow by its id or that of any of its runs. In a workflow that has not started, all steps are planned.
    Raises `NotFound`."""
    try:
        run_id: UUID | None = UUID(reference)
    except ValueError:
        run_id = None
    while run_id is not None:
        parent = await store.workflow_lists.get_parent(run_id, within=within)
        run = await find_run(store, namespace, parent.run_id if parent else run_id, within=within)
        if run is None or bare(run.task) != WORKFLOW_TASK:
            break
        if parent is not None:
            if run.state in TERMINAL and parent.finished_at is None:
                # The workflow ended between the two reads.
                parent = await store.workflow_lists.get_parent(run_id, within=within) or parent
            return parent, run
        if run.rerun_as is None:
            return not_begun(run), run
        run_id = run.rerun_as
    raise NotFound(f"there is no workflow {reference!r}")


async def show_workflow(
    store: Store, parent: Parent, run: RunView, *, is_new: bool = False, within: Transaction | None = None
) -> WorkflowShown:
    definition = definition_of(run)
    children = {
        child.step: child for child in await store.workflow_lists.list_children(parent, STEPS_MAX, within=within)
    }
    return WorkflowShown(
        id=parent.id,
        run_id=parent.run_id,
        name=run_name(run.name, run.job_id),
        status=status_of(run.state, run.attempt) if run.state in TERMINAL or not parent.next_index else "running",
        state=run.state,
        reason=run.reason,
        on_failure=parent.on_failure,
        progress=progress_of(parent),
        created_at=parent.created_at,
        finished_at=parent.finished_at,
        error=run.error,
        job_id=run.job_id,
        tick_at=run.tick_at,
        steps=[
            step_shown(step, children[step.key]) if step.key in children else planned_shown(step, run)
            for step in definition.steps
        ],
        parameters=definition.parameters,
        params=definition.values(),
        created=is_new,
    )
