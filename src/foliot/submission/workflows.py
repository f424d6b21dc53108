"""Accepts, stores and announces workflows that start now, and the redrive of one that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from foliot.errors import Conflict
from foliot.events import RunsSubmitted
from foliot.model.ids import new_id
from foliot.model.map import OnFailure
from foliot.model.namespace import Namespace
from foliot.model.run import NO_OPTIONS, NewRun, RunOptions, RunView
from foliot.model.states import TERMINAL, RunState
from foliot.model.workflow import (
    STEPS_MAX,
    WORKFLOW_TASK,
    PlannedStep,
    Workflow,
    check,
    plan,
    plan_redrive,
)
from foliot.model.workflow_request import WorkflowRequest
from foliot.store.hints import ALL_QUEUES_TOPIC, GATES_TOPIC
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.store.workflows import Parent
from foliot.submission.admission import Admission


class NewWorkflow(msgspec.Struct, frozen=True):
    run: NewRun
    """The workflow's own run. It waits for the steps, and no worker ever claims it."""
    steps: Sequence[PlannedStep]
    on_failure: OnFailure

    @property
    def step_ids(self) -> dict[str, UUID]:
        return {planned.step.key: planned.id for planned in self.steps}


class Redrive(msgspec.Struct, frozen=True):
    """The steps of a workflow to run again, under a new run of its own."""

    parent: Parent
    run: NewRun
    steps: Sequence[PlannedStep]
    kept: Sequence[RunState]
    """The states of the steps that do not run again."""
    job_id: UUID | None


class WorkflowSubmission:
    def __init__(self, *, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def accept(self, namespace: Namespace, asked: WorkflowRequest) -> NewWorkflow:
        """Raises as `Admission.accept` does; the error names the step."""
        definition = await self._admission.definitions.complete(namespace, asked.definition())
        queue = asked.queue or definition.steps[0].queue or "default"
        run = NewRun(
            new_id(),
            namespace.qualified(WORKFLOW_TASK),
            namespace.qualified(queue),
            asked.name,
            asked.priority,
            payload=msgspec.json.encode(definition).decode(),
            options=own_options(asked, namespace),
        )
        return NewWorkflow(run, plan(definition.steps), definition.on_failure)

    async def store_within(self, within: Transaction, workflow: NewWorkflow) -> None:
        await self._store.workflows.insert_workflow_within(within, workflow.run, workflow.steps, workflow.on_failure)

    async def accept_redrive(self, namespace: Namespace, reference: str, parent: Parent, run: RunView) -> Redrive:
        """Raises `Conflict` for a workflow in which nothing can run again, or `TaskDisabled`."""
        if run.state not in TERMINAL:
            raise Conflict(f"the workflow {reference!r} has not ended; cancel it first, or wait")
        if not parent.next_index:
            raise Conflict(
                f"the workflow {reference!r} ended before it began; POST /v1/runs/{parent.run_id}/rerun runs all of it"
            )
        children = await self._store.workflows.list_children(parent, STEPS_MAX)
        known = check(msgspec.convert(run.payload, Workflow))
        steps = plan_redrive(known, {child.step: (child.id, child.state) for child in children})
        if not steps:
            raise Conflict(f"the workflow {reference!r} has nothing to run again: no step failed or was cancelled")
        # No worker claims the workflow's own run, so no worker would refuse its task.
        for task in {WORKFLOW_TASK, *(planned.step.task_name() for planned in steps)}:
            await self._admission.known_tasks.refuse_disabled(namespace, task)
        again = {planned.step.key for planned in steps}
        options = None if run.options is None else msgspec.json.encode(run.options).decode()
        payload = msgspec.json.encode(run.payload).decode()
        new = NewRun(new_id(), run.task, run.queue, run.name, run.priority, payload=payload, options=options)
        kept = [child.state for child in children if child.step not in again]
        return Redrive(parent, new, steps, kept, run.job_id)

    async def redrive_within(self, within: Transaction, reference: str, redrive: Redrive) -> None:
        """Raises `Conflict` when somebody else was faster."""
        if not await self._store.workflows.redrive_within(
            within, redrive.parent, redrive.run, redrive.steps, redrive.kept, redrive.job_id
        ):
            raise Conflict(f"the workflow {reference!r} was run again by somebody else just now")

    def announce(self, steps: int) -> None:
        """Wakes workers and the gatekeeper. Call it after the commit."""
        self._store.hints.send([ALL_QUEUES_TOPIC, GATES_TOPIC])
        # The workflow's own run counts, too.
        self._store.events.emit(RunsSubmitted(steps + 1))


def own_options(asked: WorkflowRequest, namespace: Namespace) -> str | None:
    """The options of the workflow's own run, which no worker claims: metadata, tags and notifications."""
    said = asked.run_options(namespace)
    options = RunOptions(metadata=said.metadata, tags=said.tags, notify=said.notify)
    return None if options == NO_OPTIONS else msgspec.json.encode(options).decode()
