"""Submits jobs of a task: now or later, one or many, over a connection or inside a transaction.

    send_invoice.submit(customer_id=7)
    send_invoice.submit_at(timedelta(hours=1), customer_id=7)
    send_invoice.submit_many([{"customer_id": 7}, {"customer_id": 8}])
    send_invoice.submit_in(connection, customer_id=7)
    send_invoice.with_options(priority=5, idempotency_key="order 7").submit(customer_id=7)

Each method has an async variant whose name ends in `_async`: `await send_invoice.submit_async(customer_id=7)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from foliot.errors import Invalid
from foliot.sdk.default_connection import Server
from foliot.sdk.handle import Handle
from foliot.sdk.jobs import Alike, Made, job_of
from foliot.sdk.transactions import submit_in, submit_in_async
from foliot.submission.restrictions import IN_TRANSACTION, refusal

if TYPE_CHECKING:
    from foliot.sdk.http_protocol import Answer

Job = dict[str, Any]
Payload = Mapping[str, Any]


class Submitting:
    """The submit methods of a task, with or without options."""

    __slots__ = ()

    def fields(self) -> Job:
        """The fields of the job in the API, without the payload."""
        raise NotImplementedError  # pragma: no cover

    def server(self) -> Server:
        raise NotImplementedError  # pragma: no cover

    def submit(self, /, **payload: Any) -> Handle:
        """Submits a job that starts as soon as a worker is free.

        The keyword arguments are the payload, which the worker passes to the function. They must be JSON values.

        Raises:
            Invalid: The payload or an option is invalid.
            QueueFull: The queue has reached its maximum depth.
            Unreachable: The server did not answer.
        """
        return self._create(self._job(payload))

    def submit_at(self, when: datetime | timedelta, /, **payload: Any) -> Handle:
        """Submits a job that starts at a time with a time zone, or after a delay."""
        return self._create(self._job(payload) | due(when))

    def submit_many(self, payloads: Sequence[Payload], /) -> list[Handle]:
        """Submits up to 10,000 jobs in one transaction, one per payload, and returns their handles in order."""
        if not payloads:
            return []
        jobs, key = self._jobs(payloads)
        return self._handles(self.server().jobs().create_alike(jobs, idempotency_key=key))

    def submit_in(self, connection: Any, /, **payload: Any) -> Handle:
        """Submits a job in your transaction: on a psycopg connection, or an SQLAlchemy connection or session.

        The job exists if and only if the transaction commits.
        """
        return Handle(submit_in(connection, self._transactional(payload)), server=self.server())

    async def submit_async(self, /, **payload: Any) -> Handle:
        """Async variant of `submit`."""
        return await self._create_async(self._job(payload))

    async def submit_at_async(self, when: datetime | timedelta, /, **payload: Any) -> Handle:
        """Async variant of `submit_at`."""
        return await self._create_async(self._job(payload) | due(when))

    async def submit_many_async(self, payloads: Sequence[Payload], /) -> list[Handle]:
        """Async variant of `submit_many`."""
        if not payloads:
            return []
        jobs, key = self._jobs(payloads)
        async with self.server().async_jobs() as client:
            return self._handles(await client.create_alike(jobs, idempotency_key=key))

    async def submit_in_async(self, connection: Any, /, **payload: Any) -> Handle:
        """Async variant of `submit_in`, for asyncpg, psycopg's `AsyncConnection`, and SQLAlchemy's `AsyncConnection`
        and `AsyncSession`."""
        return Handle(await submit_in_async(connection, self._transactional(payload)), server=self.server())

    def _job(self, payload: Payload) -> Job:
        return job_of(self.fields(), payload)

    def _jobs(self, payloads: Sequence[Payload]) -> tuple[Alike, str | None]:
        """The jobs, and the idempotency key, which applies to the whole batch."""
        fields = self.fields()
        key = fields.pop("idempotency_key", None)
        return Alike(fields, payloads), key

    def _transactional(self, payload: Payload) -> Job:
        job = self._job(payload) | self.server().namespace_field()
        if "idempotency_key" in job:
            raise refusal("idempotency_key", IN_TRANSACTION["idempotency_key"])
        return job

    def _create(self, job: Job) -> Handle:
        return self._handle(self.server().jobs().create_job(job))

    async def _create_async(self, job: Job) -> Handle:
        async with self.server().async_jobs() as client:
            return self._handle(await client.create_job(job))

    def _handle(self, answer: Answer) -> Handle:
        return Handle(answer.document["id"], server=self.server(), is_new=answer.document["created"])

    def _handles(self, made: Sequence[Made]) -> list[Handle]:
        server = self.server()
        return [Handle(job_id, server=server, is_new=is_new) for job_id, is_new in made]


class Prepared(Submitting):
    """A task with options, as returned by `with_options`."""

    __slots__ = ("_fields", "_server")

    def __init__(self, fields: Job, server: Server) -> None:
        self._fields = fields
        self._server = server

    def fields(self) -> Job:
        return dict(self._fields)

    def server(self) -> Server:
        return self._server


def due(when: datetime | timedelta) -> Job:
    """The field for the start time of a job."""
    if isinstance(when, timedelta):
        return {"delay_seconds": max(when.total_seconds(), 0.0)}
    if when.tzinfo is None:
        raise Invalid(f"when: {when.isoformat()} has no time zone; pass an aware datetime", field="when")
    return {"schedule_time": when.isoformat()}
