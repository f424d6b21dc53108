"""Accepts, stores and announces workflows that start now, and the redrive of one that has ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from foliot.config import Config
from foliot.errors import Conflict
from foliot.events import RunsSubmitted
from foliot.model.ids import new_id
from foliot.model.map import OnFailure
from foliot.model.namespace import Namespace
from foliot.model.payloads import WORKFLOW_TASK
from foliot.model.run import NO_OPTIONS, NewRun, RunOptions, RunView
from foliot.model.states import TERMINAL, RunState
from foliot.model.tick import StoredTick, tick_of
from foliot.model.tracing import TracingSettings
from foliot.model.workflow import (
    STEPS_MAX,
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
from foliot.store.workflow_lists import Parent
from foliot.submission.admission import Admission


class NewWorkflow(msgspec.Struct, frozen=True):
    run: NewRun
    """The workflow's own run. It waits for the steps, and no worker ever claims it."""
    steps: Sequence[PlannedStep]
    on_failure: OnFailure
    traceparent: str | None = None
    """The trace of the steps, whose parent is the workflow's own run."""

    @property
    def step_ids(self) -> dict[str, UUID]:
        return {planned.step.key: planned.id for planned in self.steps}


class Redrive(msgspec.Struct, frozen=True):
    """The steps of a workflow to run again, under a new run of its own."""

    parent: Parent
    run: NewRun
    steps: Sequence[PlannedStep]
    states: Mapping[str, RunState]
    """How each step has ended."""
    job_id: UUID | None
    tick: StoredTick | None
    traceparent: str | None

    @property
    def kept(self) -> dict[str, RunState]:
        """The steps that do not run again, with their states."""
        again = {planned.step.key for planned in self.steps}
        return {key: state for key, state in self.states.items() if key not in again}


class WorkflowSubmission:
    def __init__(self, *, store: Store, admission: Admission, config: Config) -> None:
        self._store = store
        self._tracing = TracingSettings.of(config)
        self._admission = admission

    async def accept(self, namespace: Namespace, asked: WorkflowRequest) -> NewWorkflow:
        """Raises as `Admission.accept` does; the error names the step."""
        definition = await self._admission.definitions.complete(namespace, asked.definition(), has_tick=False)
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
        planned = plan(definition.steps, definition.values())
        traceparent = self._tracing.of_children(run.id, asked.traceparent)
        return NewWorkflow(run, planned, definition.on_failure, traceparent)

    async def store_within(self, within: Transaction, workflow: NewWorkflow) -> None:
        await self._store.workflows.insert_workflow_within(
            within, workflow.run, workflow.steps, workflow.on_failure, workflow.traceparent
        )

    async def accept_redrive(self, namespace: Namespace, reference: str, parent: Parent, run: RunView) -> Redrive:
        """Raises `Conflict` for a workflow in which nothing can run again, or `TaskDisabled`."""
        if run.state not in TERMINAL:
            raise Conflict(f"the workflow {reference!r} has not ended; cancel it first, or wait")
        if not parent.next_index:
            raise Conflict(
                f"the workflow {reference!r} ended before it began; POST /v1/runs/{parent.run_id}/rerun runs all of it"
            )
        children = await self._store.workflow_lists.list_children(parent, STEPS_MAX)
        definition = msgspec.convert(run.payload, Workflow)
        known = check(definition)
        steps = plan_redrive(known, {child.step: (child.id, child.state) for child in children}, definition.values())
        if not steps:
            raise Conflict(f"the workflow {reference!r} has nothing to run again: no step failed or was cancelled")
        # No worker claims the workflow's own run, so no worker would refuse its task.
        for task in {WORKFLOW_TASK, *(planned.step.task_name() for planned in steps)}:
            await self._admission.known_tasks.refuse_disabled(namespace, task)
        # It is a trace of its own, as a rerun is.
        kept = {name: value for name, value in (run.options or {}).items() if name != "traceparent"}
        options = msgspec.json.encode(kept).decode() if kept else None
        payload = msgspec.json.encode(run.payload).decode()
        new = NewRun(new_id(), run.task, run.queue, run.name, run.priority, payload=payload, options=options)
        states = {child.step: child.state for child in children}
        traceparent = self._tracing.of_children(new.id, None)
        return Redrive(parent, new, steps, states, run.job_id, tick_of(run.options), traceparent)

    async def redrive_within(self, within: Transaction, reference: str, redrive: Redrive) -> None:
        """Raises `Conflict` when somebody else was faster."""
        if not await self._store.redrive.redrive_within(
            within,
            redrive.parent,
            redrive.run,
            redrive.steps,
            list(redrive.kept.values()),
            redrive.job_id,
            redrive.tick,
            redrive.traceparent,
        ):
            raise Conflict(f"the workflow {reference!r} was run again by somebody else just now")

    def announce(self, steps: int) -> None:
        """Wakes workers and the gatekeeper. Call it after the commit."""
        self._store.hints.send([ALL_QUEUES_TOPIC, GATES_TOPIC])
        # The workflow's own run counts, too.
        self._store.events.emit(RunsSubmitted(steps + 1))


def own_options(asked: WorkflowRequest, namespace: Namespace) -> str | None:
    """The options of the workflow's own run, which no worker claims: metadata, tags, notifications and trace."""
    said = asked.run_options(namespace)
    options = RunOptions(metadata=said.metadata, tags=said.tags, notify=said.notify, traceparent=asked.traceparent)
    return None if options == NO_OPTIONS else msgspec.json.encode(options).decode()
