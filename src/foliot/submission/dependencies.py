"""Finds the jobs that a job depends on: recurring jobs by name or id, one-off jobs by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from foliot.errors import Invalid
from foliot.model.job import RecurringJob
from foliot.model.namespace import Namespace
from foliot.store.lookup import find_job, find_run, job_id_of
from foliot.store.store import Store


@dataclass(frozen=True, slots=True)
class Dependencies:
    jobs: list[RecurringJob] = field(default_factory=list)
    run_ids: list[UUID] = field(default_factory=list)


async def find_dependencies(store: Store, namespace: Namespace, references: Sequence[str]) -> Dependencies:
    """Raises `Invalid` for an unknown job, and for a mix of recurring and one-off jobs."""
    found = Dependencies()
    for index, reference in enumerate(references):
        place = f"dependencies[{index}]"
        job_id = job_id_of(reference)
        job = await find_job(store, namespace, job_id, reference)
        if job is not None:
            found.jobs.append(job)
        elif job_id is not None and await find_run(store, namespace, job_id) is not None:
            found.run_ids.append(job_id)
        else:
            raise Invalid(f"{place}: there is no job {reference!r}", field=place)
    if found.jobs and found.run_ids:
        raise Invalid(
            "dependencies: recurring jobs and single ones can't be mixed; make it a workflow", field="dependencies"
        )
    if len({*found.run_ids, *(job.id for job in found.jobs)}) < len(references):
        raise Invalid("dependencies: one of them is named twice", field="dependencies")
    return found
