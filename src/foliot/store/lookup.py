"""Finds runs and recurring jobs by id or name within one namespace; those of others do not exist for the caller.

The API and submissions use no other lookup: a test checks that.
"""

from __future__ import annotations

from uuid import UUID

from foliot.errors import NotFound
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
    """By id or by name."""
    job = await store.jobs.get_job(job_id, namespace.qualified(name))
    return job if job is not None and namespace.owns(job.queue) else None


async def get_job(store: Store, namespace: Namespace, reference: str) -> RecurringJob:
    """As `find_job`, by a reference. Raises `NotFound`."""
    job = await find_job(store, namespace, job_id_of(reference), reference)
    if job is None:
        raise unknown_job(reference)
    return job


def job_id_of(reference: str) -> UUID | None:
    """None when the reference can only be a name. Raises `NotFound` for a NUL, which PostgreSQL would refuse."""
    if "\0" in reference:
        raise unknown_job(reference)
    try:
        return UUID(reference)
    except ValueError:
        return None


def unknown_job(reference: str) -> NotFound:
    return NotFound(f"there is no recurring job {reference!r}")
