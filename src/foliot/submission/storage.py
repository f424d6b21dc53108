"""Stores an accepted job inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import msgspec

from foliot.errors import Conflict
from foliot.model.job import RecurringJob
from foliot.model.namespace import bare
from foliot.model.run import NewRun, SubmittedRun
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from foliot.store.unique_runs import new_submission


class DependentRun(msgspec.Struct, frozen=True):
    """A run that waits for other runs."""

    run: NewRun
    upstream_ids: Sequence[UUID]


class NewRecurringJob(msgspec.Struct, frozen=True):
    job: RecurringJob
    upstream_ids: Sequence[UUID] = ()
    """The recurring jobs that it depends on."""


Accepted = NewRun | DependentRun | NewRecurringJob


async def store_within(
    store: Store, accepted: Accepted, within: Transaction, *, actor: str | None = None
) -> SubmittedRun | RecurringJob:
    """`actor`: who submits it. Raises `Conflict` for a name or a unique key that is taken."""
    if isinstance(accepted, NewRun):
        (found,) = await store.submissions.submit_within(within, [accepted])
        return found
    if isinstance(accepted, DependentRun):
        run = accepted.run
        await store.dependencies.insert_dependent_within(within, run, accepted.upstream_ids)
        stored = await store.run_inserts.find_runs([run.id], within=within)
        return new_submission(run, stored[run.id])
    job = accepted.job
    if not await store.jobs.insert_job(job, actor=actor, within=within):
        raise Conflict(f"name: there is a job named {bare(job.name)!r} already")
    if accepted.upstream_ids:
        await store.job_dependencies.insert_job_dependencies(job, list(accepted.upstream_ids), within=within)
    return job
