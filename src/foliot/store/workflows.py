"""Creates workflows: a parent, its own run, a run for each step, and the edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.model.conditions import Condition
from foliot.model.map import MapPayload, OnFailure
from foliot.model.namespace import Namespace, namespace_of
from foliot.model.priority import aging_microseconds
from foliot.model.run import NO_OPTIONS, NewRun, RunOptions
from foliot.model.states import RunState
from foliot.model.tick import StoredTick
from foliot.model.workflow import PlannedStep, Step
from foliot.store import queries
from foliot.store.arrays import array_text, columns
from foliot.store.dependencies import Dependencies
from foliot.store.postgres import Database, Transaction
from foliot.store.workflow_lists import ParentKind

BATCH = 1000


@dataclass(frozen=True, slots=True)
class Family:
    """The children that a workflow or map will have."""

    kind: ParentKind
    on_failure: OnFailure
    total: int
    made: int
    """How many children are stored together with the parent. The others are created later."""
    capacity: int
    """How many children may be live at a time."""
    template: str | None = None
    """For a map: the JSON text of the template for each item's run."""
    items: str | None = None
    """For a map: the JSON text of its list, or None for a range."""


@dataclass(frozen=True, slots=True)
class Inherited:
    """The tick and the trace, which the steps of a workflow inherit from its run."""

    tick: StoredTick | None = None
    traceparent: str | None = None


NOTHING_INHERITED = Inherited()


class Workflows:
    def __init__(self, database: Database, *, dependencies: Dependencies, aging_seconds: float) -> None:
        self._database = database
        self._dependencies = dependencies
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("workflows")

    async def insert_workflow(self, run: NewRun, steps: Sequence[PlannedStep], on_failure: OnFailure) -> set[str]:
        """Stores the whole workflow or nothing. Returns the queues with ready steps. A repetition changes nothing."""

        return await self._database.in_transaction(
            "insert_workflow", lambda within: self.insert_workflow_within(within, run, steps, on_failure)
        )

    async def insert_workflow_within(
        self,
        within: Transaction,
        run: NewRun,
        steps: Sequence[PlannedStep],
        on_failure: OnFailure,
        traceparent: str | None = None,
    ) -> set[str]:
        if not await self.insert_parent(within, run.id, _of_steps(steps, on_failure)):
            return set()
        await self.insert_parent_run(within, run)
        inherited = Inherited(traceparent=traceparent)
        return await self.insert_steps(within, run.id, steps, Namespace(namespace_of(run.queue)), inherited)

    async def expand_workflow(
        self,
        run_id: UUID,
        token: int,
        worker_id: UUID,
        steps: Sequence[PlannedStep],
        on_failure: OnFailure,
        namespace: Namespace,
        inherited: Inherited = NOTHING_INHERITED,
    ) -> set[str] | None:
        """Turns the run of an attempt into a workflow. Returns the queues with ready steps, or None if the run is no
        longer this worker's."""

        async def work(within: Transaction) -> set[str] | None:
            if not await self.expand_run(within, run_id, token, worker_id):
                return None
            await self.insert_parent(within, run_id, _of_steps(steps, on_failure))
            return await self.insert_steps(within, run_id, steps, namespace, inherited)

        return await self._database.in_transaction("expand_workflow", work)

    async def insert_parent(self, within: Transaction, run_id: UUID, family: Family) -> bool:
        return bool(
            await within.fetch_value(
                self._queries["insert_parent"],
                run_id=run_id,
                kind=family.kind,
                on_failure=family.on_failure,
                total=family.total,
                made=family.made,
                capacity=family.capacity,
                template=family.template,
                items=family.items,
                now=self._now(),
            )
        )

    async def insert_parent_run(
        self, within: Transaction, run: NewRun, rerun_of: UUID | None = None, job_id: UUID | None = None
    ) -> datetime:
        created_at: datetime = await within.fetch_value(
            self._queries["insert_parent_run"],
            run_id=run.id,
            task=run.task,
            queue=run.queue,
            name=run.name,
            priority=run.priority,
            payload=run.payload,
            now=self._now(),
            rerun_of=rerun_of,
            options=run.options,
            job_id=job_id,
        )
        return created_at

    async def expand_run(self, within: Transaction, run_id: UUID, token: int, worker_id: UUID) -> bool:
        return bool(
            await within.fetch_value(self._queries["expand_run"], run_id=run_id, token=token, worker_id=worker_id)
        )

    async def insert_steps(
        self,
        within: Transaction,
        parent_id: UUID,
        steps: Sequence[PlannedStep],
        namespace: Namespace,
        inherited: Inherited = NOTHING_INHERITED,
    ) -> set[str]:
        """Returns the queues with ready steps."""
        given = columns([_row(planned, namespace, inherited) for planned in steps], 16)
        rows = await within.fetch(self._queries["insert_steps"], *given, parent_id, self._now(), self._aging)
        new = {planned.id for planned in steps}
        edges = [(upstream, planned.id) for planned in steps for upstream in planned.upstream if upstream in new]
        await self._dependencies.insert_dependencies(within, edges)
        return {row[0] for row in rows if row[1] == RunState.READY}

    async def forget_parents(self, finished_before: datetime) -> int:
        """Deletes a batch of finished parents. Returns their number."""
        return int(
            await self._database.fetch_value(
                self._queries["forget_parents"], limit=BATCH, finished_before=finished_before
            )
        )

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()


def _of_steps(steps: Sequence[PlannedStep], on_failure: OnFailure) -> Family:
    number = len(steps)
    return Family("workflow", on_failure, total=number, made=number, capacity=number)


def _row(planned: PlannedStep, namespace: Namespace, inherited: Inherited) -> tuple[object, ...]:
    step, met = planned.step, planned.met or {}
    task, payload, options = _run_of(step, namespace, inherited, planned.condition)
    queue = None if step.queue is None else namespace.qualified(step.queue)
    failed = met.get("failed", 0) + met.get("cancelled", 0)
    return (
        planned.id, step.key, namespace.qualified(task), queue, step.name or step.key, step.priority, payload, options,
        step.needs,
        array_text(planned.upstream), planned.has_dependents, step.delay_seconds, planned.rerun_of,
        met.get("succeeded", 0), failed, met.get("skipped", 0),
    )  # fmt: skip


def _run_of(
    step: Step, namespace: Namespace, inherited: Inherited, condition: Condition | None
) -> tuple[str, str | None, str | None]:
    """Returns the task, payload and options of a step's run. A map passes its options on to its items, except those
    about the map itself: its signal, condition, tags and notifications."""
    if step.map is None and condition is None and inherited == NOTHING_INHERITED:
        return step.task_name(), step.payload_text(), step.options_text(namespace)
    given = step.run_options(namespace)
    if step.map is None:
        options = msgspec.structs.replace(
            given, tick=inherited.tick, traceparent=inherited.traceparent, condition=condition
        )
        return step.task_name(), step.payload_text(), msgspec.json.encode(options).decode()
    fields = {
        name: getattr(step, name)
        for name in MapPayload.__struct_fields__
        if name not in ("name", "delay_seconds", "signal", "notify")
    }
    payload = MapPayload(**fields | {"name": step.name or step.key})
    options = RunOptions(
        signal=given.signal, tags=given.tags, notify=given.notify, tick=inherited.tick,
        traceparent=inherited.traceparent, condition=condition,
    )  # fmt: skip
    return (
        "map",
        msgspec.json.encode(payload).decode(),
        None if options == NO_OPTIONS else msgspec.json.encode(options).decode(),
    )
