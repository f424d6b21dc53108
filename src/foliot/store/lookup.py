"""Finds runs and recurring jobs by id or name in one namespace. Other namespaces are invisible to the caller.

A test checks that the API and submissions use no other lookup.
"""

from __future__ import annotations

from uuid import UUID

from foliot.errors import NotFound
from foliot.model.ids import not_finished_before
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


async def unknown_run(store: Store, namespace: Namespace, run_id: UUID) -> NotFound:
    """The error for a run that is not in the database. It says where the run may be if its days are archived."""
    made = not_finished_before(run_id)
    kept = await store.partitions.oldest_kept()
    days = await store.archives.find_archived(namespace, run_id, made.date(), kept.date())
    if not days:
        return NotFound(f"there is no run {str(run_id)!r}")
    places = ", ".join(f"{one.location}/runs/day={one.day}/namespace={namespace.name}/" for one in days)
    return NotFound(
        f"the run {str(run_id)!r} is not in the database any more, if it existed; the archive has runs of its time in "
        f"{places}"
    )


async def find_job(store: Store, namespace: Namespace, job_id: UUID | None, name: str) -> RecurringJob | None:
    """By id or by name."""
    job = await store.jobs.get_job(job_id, namespace.qualified(name))
    return job if job is not None and namespace.owns(job.queue) else None


async def get_job(store: Store, namespace: Namespace, reference: str) -> RecurringJob:
    """Finds a job by a reference, which is an id or a name. Raises `NotFound`."""
    job = await find_job(store, namespace, job_id_of(reference), reference)
    if job is None:
        raise unknown_job(reference)
    return job


def job_id_of(reference: str) -> UUID | None:
    """Returns None if the reference can only be a name. Raises `NotFound` for a NUL, which PostgreSQL would reject."""
    if "\0" in reference:
        raise unknown_job(reference)
    try:
        return UUID(reference)
    except ValueError:
        return None


def unknown_job(reference: str) -> NotFound:
    return NotFound(f"there is no recurring job {reference!r}")
