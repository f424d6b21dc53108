"""Runs and recurring jobs by id or name, for those whose namespace they are in. For all others they are not there.

Routes look nowhere else: a test says so.
"""

from __future__ import annotations

from uuid import UUID

from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace
from foliot.model.run import RunView
from foliot.store.postgres import Transaction
from foliot.store.store import Store


async def find_run(
    store: Store, namespace: Namespace, run_id: UUID, *, within: Transaction | None = None
) -> RunView | None:
    run = await store.runs.get_run(run_id, within=within)
    return run if run is not None and namespace.owns(run.queue) else None


async def find_job(store: Store, namespace: Namespace, job_id: UUID | None, name: str) -> RecurringJob | None:
    """By either."""
    job = await store.jobs.get_job(job_id, namespace.qualified(name))
    return job if job is not None and namespace.owns(job.queue) else None
