"""Runs that are made of others, and runs that wait for others: stored, expanded, shown, stopped, run again,
signalled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from foliot.errors import Invalid
from foliot.model.ids import CLOCK_TOLERANCE, not_finished_before
from foliot.model.map import MapPayload, OnFailure
from foliot.model.namespace import Namespace, namespace_of
from foliot.model.priority import aging_microseconds
from foliot.model.run import NO_OPTIONS, NewRun, RunOptions
from foliot.model.states import RunState
from foliot.model.workflow import PlannedStep, Step
from foliot.store import queries
from foliot.store.arrays import array_text, columns
from foliot.store.postgres import Database, Record, Transaction
from foliot.store.run_lists import Page, page_of

ParentKind = Literal["workflow", "map"]
ADOPTED_MAX = 100_000
BATCH = 1000
FIRST_ID, LAST_ID = UUID(int=0), UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class Look:
    """Where a look for what is stuck begins, and at how much it looks; None: there is nothing more of that kind."""

    after_run: UUID | None = FIRST_ID
    after_parent: UUID | None = FIRST_ID
    runs: int = 2000
    parents: int = 200


@dataclass(frozen=True, slots=True)
class Parent:
    """Where a workflow or a map stands."""

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
    """A workflow as lists show it."""

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
    """Of one that is made of others itself: how many of them, and how they came out."""


@dataclass(frozen=True, slots=True)
class Upstream:
    key: str
    state: RunState
    result: str | None
    """JSON text."""


@dataclass(frozen=True, slots=True)
class Before:
    """What a run may know of those before it."""

    upstream: Sequence[Upstream] = ()
    signal: str | None = None
    """JSON text."""
    bytes: int = 0
    """Of all results together."""


@dataclass(frozen=True, slots=True)
class Family:
    """The children that a run is to have."""

    kind: ParentKind
    on_failure: OnFailure
    total: int
    made: int
    """As many of them are stored together with it; the others are made when their turn comes."""
    capacity: int
    """How many of them exist at a time."""
    template: str | None = None
    """Of a map: JSON text of what every item's run is made from."""
    items: str | None = None
    """Of a map: JSON text of a list; None for a range."""


class Workflows:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = {**queries.load("workflows"), **queries.load("stuck_runs")}

    # --- made

    async def insert_workflow(self, run: NewRun, steps: Sequence[PlannedStep], on_failure: OnFailure) -> set[str]:
        """Stores all of it or nothing; the queues in which something is ready. Sent again, it changes nothing."""

        return await self._database.in_transaction(
            "insert_workflow", lambda within: self.insert_workflow_within(within, run, steps, on_failure)
        )

    async def insert_workflow_within(
        self, within: Transaction, run: NewRun, steps: Sequence[PlannedStep], on_failure: OnFailure
    ) -> set[str]:
        if not await self.insert_parent(within, run.id, _of_steps(steps, on_failure)):
            return set()
        await self.insert_parent_run(within, run)
        return await self.insert_steps(within, run.id, steps, Namespace(namespace_of(run.queue)))

    async def expand_workflow(
        self,
        run_id: UUID,
        token: int,
        worker_id: UUID,
        steps: Sequence[PlannedStep],
        on_failure: OnFailure,
        namespace: Namespace,
    ) -> set[str] | None:
        """The run of an attempt becomes its steps. None: it is no longer this worker's."""

        async def work(within: Transaction) -> set[str] | None:
            if not await self.expand_run(within, run_id, token, worker_id):
                return None
            await self.insert_parent(within, run_id, _of_steps(steps, on_failure))
            return await self.insert_steps(within, run_id, steps, namespace)

        return await self._database.in_transaction("expand_workflow", work)

    async def expand_map(self, run_id: UUID, token: int, worker_id: UUID, family: Family) -> bool:
        """The run of an attempt becomes its items, of which the first are made; one that is run again takes over those
        that succeeded."""

        async def work(within: Transaction) -> bool:
            if not await self.expand_run(within, run_id, token, worker_id):
                return False
            adoptable = await self.find_adoptable(within, run_id, family)
            if adoptable is not None and await self.adopt_items(within, adoptable, run_id, family):
                await self.repeat_items(within, adoptable)
                await self.refill(within, adoptable)
                return True
            await self.insert_parent(within, run_id, family)
            await self.refill(within, run_id)
            return True

        return await self._database.in_transaction("expand_map", work)

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
        self, within: Transaction, parent_id: UUID, steps: Sequence[PlannedStep], namespace: Namespace
    ) -> set[str]:
        """The queues in which something is ready."""
        given = columns([_row(planned, namespace) for planned in steps], 16)
        rows = await within.fetch(self._queries["insert_steps"], *given, parent_id, self._now(), self._aging)
        new = {planned.id for planned in steps}
        arrows = [(upstream, planned.id) for planned in steps for upstream in planned.upstream if upstream in new]
        await self.insert_dependencies(within, arrows)
        return {row[0] for row in rows if row[1] == RunState.READY}

    async def insert_dependencies(self, within: Transaction, arrows: Sequence[tuple[UUID, UUID]]) -> None:
        """From each upstream to what waits for it."""
        if arrows:
            await within.execute(
                self._queries["insert_dependencies"], *(array_text(column) for column in columns(arrows, 2))
            )

    async def refill(self, within: Transaction, map_id: UUID) -> None:
        await within.execute(self._queries["refill"], map_id=map_id, now=self._now())

    async def find_adoptable(self, within: Transaction, run_id: UUID, family: Family) -> UUID | None:
        row = await within.fetch_row(
            self._queries["find_adoptable"], run_id=run_id, template=family.template, items=family.items
        )
        return row[0] if row and row[1] <= ADOPTED_MAX else None

    async def adopt_items(self, within: Transaction, map_id: UUID, run_id: UUID, family: Family) -> bool:
        return (
            await within.fetch_value(
                self._queries["adopt_items"],
                map_id=map_id,
                run_id=run_id,
                on_failure=family.on_failure,
                capacity=family.capacity,
            )
            is not None
        )

    async def repeat_items(self, within: Transaction, map_id: UUID) -> None:
        await within.execute(self._queries["repeat_items"], map_id=map_id, aging=self._aging, now=self._now())

    async def insert_dependent(self, run: NewRun, upstream_ids: Sequence[UUID]) -> None:
        """A run that waits until all of these have succeeded. Raises `Invalid` for one that does not exist."""
        await self._database.in_transaction(
            "insert_dependent", lambda within: self.insert_dependent_within(within, run, upstream_ids)
        )

    async def insert_dependent_within(self, within: Transaction, run: NewRun, upstream_ids: Sequence[UUID]) -> None:
        live = await self.mark_followed(within, upstream_ids)
        given = (
            run.id,
            run.task,
            run.queue,
            run.name,
            run.priority,
            run.due_at,
            run.delay_seconds,
            run.payload,
            run.options,
            run.expires_at,
        )
        arguments = (*given, upstream_ids, self._aging, self._now(), not_finished_before(run.id))
        if not await within.fetch_value(self._queries["insert_dependent"], *arguments):
            return
        if missing := await self._tie(within, run.id, upstream_ids, live):
            raise Invalid(f"dependencies: there is no job {str(min(missing))!r}", field="dependencies")

    async def _tie(self, within: Transaction, run_id: UUID, upstream_ids: Sequence[UUID], live: set[UUID]) -> set[UUID]:
        """A run to those that it waits for, of which some live; those that never were."""
        await self.insert_dependencies(within, [(upstream, run_id) for upstream in upstream_ids])
        ended = [upstream for upstream in upstream_ids if upstream not in live]
        row = await within.fetch_row(self._queries["settle_ended"], run_ids=ended, now=self._now()) if ended else None
        return set(ended).difference(row[0] if row else ())

    # --- stopped, run again, signalled

    async def spread_cancels(self) -> set[UUID]:
        """From parents that are asked to end to their children, and theirs; the workers that hold some of these."""
        holders: set[UUID] = set()
        while rows := await self._database.fetch(self._queries["spread_cancels"]):
            holders |= {row[0] for row in rows if row[0] is not None}
        return holders

    async def redrive_within(
        self,
        within: Transaction,
        parent: Parent,
        run: NewRun,
        steps: Sequence[PlannedStep],
        kept: Sequence[RunState],
        job_id: UUID | None = None,
    ) -> bool:
        """The workflow goes on under a new run, which is its job's. False: somebody else was first.

        Sent again after a lost answer, it finds its own run there and changes nothing.
        """
        succeeded, skipped = kept.count(RunState.SUCCEEDED), kept.count(RunState.SKIPPED)
        if not await within.fetch_value(
            self._queries["reopen_parent"],
            parent_id=parent.id,
            run_id=run.id,
            unfinished=len(steps),
            succeeded=succeeded,
            skipped=skipped,
            old_run_id=parent.run_id,
        ):
            latest = await self.get_parent(parent.id, within=within)
            return latest is not None and latest.run_id == run.id
        await self.insert_parent_run(within, run, parent.run_id, job_id)
        replaced = [(step.rerun_of, step.id) for step in steps if step.rerun_of is not None] + [(parent.run_id, run.id)]
        since = parent.created_at - CLOCK_TOLERANCE
        await within.execute(self._queries["point_to_rerun"], *columns(replaced, 2), since)
        await self.insert_steps(within, parent.id, steps, Namespace(namespace_of(run.queue)))
        await within.execute(self._queries["skip_hopeless"], parent_id=parent.id, now=self._now())
        return True

    async def signal_run(self, run_id: UUID, signal: str) -> tuple[str, RunState] | None:
        """Queue and state of the run. None: it does not wait for a signal, or has had it."""
        row = await self._database.fetch_row(self._queries["signal_run"], run_id=run_id, signal=signal, now=self._now())
        return (row[0], RunState(row[1])) if row else None

    async def time_out_signals(self, limit: int) -> list[str]:
        """The queue of each run that was let go."""
        return [
            row[0]
            for row in await self._database.fetch(self._queries["time_out_signals"], limit=limit, now=self._now())
        ]

    async def forget_parents(self, finished_before: datetime) -> int:
        """The number forgotten, at most a batch."""
        return int(
            await self._database.fetch_value(
                self._queries["forget_parents"], limit=BATCH, finished_before=finished_before
            )
        )

    # --- shown

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
        """`name` as it is, or that of a recurring job."""
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
        items = [_workflow(row) for row in rows if row[2] is not None]
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

    async def read_upstream(self, run_ids: Sequence[UUID], max_bytes: int) -> dict[UUID, Before]:
        """For each of these live runs: what ended before it, and its signal. Results that are larger together are not
        among it."""
        found: dict[UUID, list[Upstream]] = {}
        signals: dict[UUID, tuple[str | None, int]] = {}
        for row in await self._database.fetch(self._queries["read_upstream"], run_ids=run_ids, max_bytes=max_bytes):
            before = found.setdefault(row[0], [])
            signals[row[0]] = row[1], int(row[5] or 0)
            if row[2] is not None:
                before.append(Upstream(row[2], RunState(row[3]), row[4]))
        return {run_id: Before(before, *signals[run_id]) for run_id, before in found.items()}

    async def mark_followed(self, within: Transaction, run_ids: Sequence[UUID]) -> set[UUID]:
        """Those that live."""
        return {row[0] for row in await within.fetch(self._queries["mark_followed"], run_ids=run_ids)}

    async def count_anew(self, run_id: UUID) -> None:
        """Lets a run that waits look again at all that it waits for."""

        async def work(within: Transaction) -> None:
            upstream_ids = await within.fetch_value(self._queries["count_anew"], run_id=run_id)
            if upstream_ids:
                await self._tie(within, run_id, upstream_ids, await self.mark_followed(within, upstream_ids))

        await self._database.in_transaction("count_anew", work)

    async def find_stuck(self, look: Look) -> tuple[list[tuple[str, UUID]], Look | None]:
        """Kind and id of what should have gone on and did not, and where to look next: None at the end."""
        rows = await self._database.fetch(
            self._queries["find_stuck"],
            after_run=look.after_run or LAST_ID,
            after_parent=look.after_parent or LAST_ID,
            runs=look.runs,
            parents=look.parents,
        )
        following = replace(look, after_run=rows[0][0], after_parent=rows[0][1])
        is_over = following.after_run is None and following.after_parent is None
        return [(row[2], row[3]) for row in rows if row[3] is not None], None if is_over else following

    def _now(self) -> datetime | None:
        return self._database.clock.sql_now()


def _of_steps(steps: Sequence[PlannedStep], on_failure: OnFailure) -> Family:
    number = len(steps)
    return Family("workflow", on_failure, total=number, made=number, capacity=number)


def _row(planned: PlannedStep, namespace: Namespace) -> tuple[object, ...]:
    step, met = planned.step, planned.met or {}
    task, payload, options = _run_of(step, namespace)
    queue = None if step.queue is None else namespace.qualified(step.queue)
    failed = met.get("failed", 0) + met.get("cancelled", 0)
    return (
        planned.id, step.key, namespace.qualified(task), queue, step.name or step.key, step.priority, payload, options, step.needs,
        array_text(planned.upstream), planned.has_dependents, step.delay_seconds, planned.rerun_of,
        met.get("succeeded", 0), failed, met.get("skipped", 0),
    )  # fmt: skip


def _run_of(step: Step, namespace: Namespace) -> tuple[str, str | None, str | None]:
    """Task, payload and options of the run that a step is. That of a map makes others: it is they that the options are
    for, but for what says who is told of the end of them all."""
    if step.map is None:
        return step.task_name(), step.payload_text(), step.options_text(namespace)
    fields = {
        name: getattr(step, name)
        for name in MapPayload.__struct_fields__
        if name not in ("name", "delay_seconds", "signal", "notify")
    }
    payload = MapPayload(**fields | {"name": step.name or step.key})
    asked = step.run_options(namespace)
    options = RunOptions(signal=asked.signal, tags=asked.tags, notify=asked.notify)
    return (
        "map",
        msgspec.json.encode(payload).decode(),
        None if options == NO_OPTIONS else msgspec.json.encode(options).decode(),
    )


def _workflow(row: Record) -> WorkflowItem:
    values = list(row)[2:]
    name, state, reason, error, job_id, tick_at = values[PARENT_FIELDS:]
    error = None if error is None else msgspec.Raw(error)
    return WorkflowItem(Parent(*values[:PARENT_FIELDS]), name, RunState(state), reason, error, job_id, tick_at)


def _child(row: Record) -> Child:
    values = dict(row)
    values["state"] = RunState(values["state"])
    for name in ("result", "error", "children"):
        values[name] = None if values[name] is None else msgspec.Raw(values[name])
    return Child(**values)
