"""Refuses fields of a job that are not supported where it was submitted: in a batch, or straight to the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foliot.errors import Invalid

if TYPE_CHECKING:
    from foliot.model.job_request import JobRequest

WITHOUT_SERVER = {
    "idempotency_key": "only a server remembers idempotency keys; straight to the database, use unique",
    "dependencies": "straight to the database, a job has no dependencies; submit it to a server",
}
IN_TRANSACTION = {"idempotency_key": "the transaction itself happens once or not at all; use unique"}


def refuse_without_server(job: JobRequest) -> None:
    """Raises `Invalid` for a job that can't be submitted straight to the database."""
    for field, why in WITHOUT_SERVER.items():
        if getattr(job, field) is not None:
            raise refusal(field, why)
    if job.is_recurring:
        raise refusal("cron", "straight to the database there are one-off jobs only; submit it to a server")


def refuse_in_batch(job: JobRequest) -> None:
    """Raises `Invalid` for a job that can't be part of a batch."""
    if job.is_recurring:
        raise refusal("cron", "a batch has one-off jobs only")
    if job.dependencies is not None:
        raise refusal("dependencies", "not in a batch; submit the job by itself, or a workflow")
    if job.idempotency_key is not None:
        raise refusal("idempotency_key", "is for the whole batch")


def refusal(field: str, why: str) -> Invalid:
    return Invalid(f"{field}: {why}", field=field)
