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
from foliot.store.submissions import new_submission


class DependentRun(msgspec.Struct, frozen=True):
    """A run that waits for other runs."""

    run: NewRun
    upstream_ids: Sequence[UUID]


class NewRecurringJob(msgspec.Struct, frozen=True):
    job: RecurringJob
    upstream_ids: Sequence[UUID] = ()
    """The recurring jobs that it depends on."""


Accepted = NewRun | DependentRun | NewRecurringJob


async def store_within(store: Store, accepted: Accepted, within: Transaction) -> SubmittedRun | RecurringJob:
    """Raises `Conflict` for a name or a unique key that is taken."""
    if isinstance(accepted, NewRun):
        (found,) = await store.submissions.submit_within(within, [accepted])
        return found
    if isinstance(accepted, DependentRun):
        run = accepted.run
        await store.workflows.insert_dependent_within(within, run, accepted.upstream_ids)
        stored = await store.runs.find_runs([run.id], within=within)
        return new_submission(run, stored[run.id])
    job = accepted.job
    if not await store.jobs.insert_job(job, within=within):
        raise Conflict(f"name: there is a job named {bare(job.name)!r} already")
    if accepted.upstream_ids:
        await store.jobs.insert_job_dependencies(job, list(accepted.upstream_ids), within=within)
    return job
