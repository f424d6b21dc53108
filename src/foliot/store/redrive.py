"""Redrive: runs the failed part of a finished workflow again."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foliot.model.ids import CLOCK_TOLERANCE
from foliot.model.namespace import Namespace, namespace_of
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.model.tick import StoredTick
from foliot.model.workflow import PlannedStep
from foliot.store import queries
from foliot.store.arrays import columns
from foliot.store.postgres import Database, Transaction
from foliot.store.workflow_lists import Parent, WorkflowLists
from foliot.store.workflows import Inherited, Workflows


class Redrive:
    def __init__(self, database: Database, *, workflows: Workflows, workflow_lists: WorkflowLists) -> None:
        self._database = database
        self._workflows = workflows
        self._workflow_lists = workflow_lists
        self._queries = queries.load("redrive")

    async def redrive_within(
        self,
        within: Transaction,
        parent: Parent,
        run: NewRun,
        steps: Sequence[PlannedStep],
        kept: Sequence[RunState],
        job_id: UUID | None = None,
        tick: StoredTick | None = None,
        traceparent: str | None = None,
    ) -> bool:
        """Reopens the workflow under a new run, which belongs to the same recurring job.

        Returns False if another redrive was first. Repeated after a lost answer, it finds its own run and changes
        nothing.
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
            latest = await self._workflow_lists.get_parent(parent.id, within=within)
            return latest is not None and latest.run_id == run.id
        await self._workflows.insert_parent_run(within, run, parent.run_id, job_id)
        replaced = [(step.rerun_of, step.id) for step in steps if step.rerun_of is not None] + [(parent.run_id, run.id)]
        since = parent.created_at - CLOCK_TOLERANCE
        await within.execute(self._queries["point_to_rerun"], *columns(replaced, 2), since)
        namespace, inherited = Namespace(namespace_of(run.queue)), Inherited(tick, traceparent)
        await self._workflows.insert_steps(within, parent.id, steps, namespace, inherited)
        await within.execute(self._queries["skip_undue_steps"], parent_id=parent.id, now=self._database.clock.sql_now())
        return True
