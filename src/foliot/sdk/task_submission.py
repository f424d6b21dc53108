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
from typing import TYPE_CHECKING, Any, Generic

from foliot.errors import Invalid
from foliot.model.json_schema_check import Unknown
from foliot.model.payloads import is_template
from foliot.sdk.current_trace import in_current_trace
from foliot.sdk.default_connection import Server
from foliot.sdk.handle import Handle
from foliot.sdk.jobs import Alike, Made, job_of
from foliot.sdk.signature import Signature
from foliot.sdk.transactions import submit_in, submit_in_async
from foliot.sdk.type_variables import P, R
from foliot.submission.restrictions import IN_TRANSACTION, refusal

if TYPE_CHECKING:
    from foliot.sdk.http_protocol import Answer

Job = dict[str, Any]
Payload = Mapping[str, Any]


class Submitting(Generic[P, R]):
    """The submit methods of a task, with or without options. `P` are the arguments of its function and `R` its return
    type."""

    __slots__ = ()

    def fields(self) -> Job:
        """The fields of the job in the API, without the payload."""
        raise NotImplementedError  # pragma: no cover

    def server(self) -> Server:
        raise NotImplementedError  # pragma: no cover

    def signature_of_task(self) -> Signature | None:
        """The function's signature. None: the function is in another program."""
        return None

    def submit(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submits a job that starts as soon as a worker is free.

        The arguments are the payload, which the worker passes to the function.

        Raises:
            Invalid: The function does not take these arguments, or an option is invalid.
            QueueFull: The queue has reached its maximum depth.
            Unreachable: The server did not answer.
        """
        return self._create(self._job(args, kwargs))

    def submit_at(self, when: datetime | timedelta, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submits a job that starts at a time with a time zone, or after a delay."""
        return self._create(self._job(args, kwargs) | due(when))

    def submit_many(self, payloads: Sequence[Payload], /) -> list[Handle[R]]:
        """Submits up to 10,000 jobs in one transaction, one per payload, and returns their handles in order."""
        if not payloads:
            return []
        jobs, key = self._jobs(payloads)
        return self._handles(self.server().jobs().create_alike(jobs, idempotency_key=key))

    def submit_in(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submits a job in your transaction: on a connection of psycopg or Django, or an SQLAlchemy connection or
        session.

        The job exists if and only if the transaction commits.
        """
        return self._handle(submit_in(connection, self._transactional(args, kwargs)), is_new=None)

    async def submit_async(self, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Async variant of `submit`."""
        return await self._create_async(self._job(args, kwargs))

    async def submit_at_async(self, when: datetime | timedelta, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Async variant of `submit_at`."""
        return await self._create_async(self._job(args, kwargs) | due(when))

    async def submit_many_async(self, payloads: Sequence[Payload], /) -> list[Handle[R]]:
        """Async variant of `submit_many`."""
        if not payloads:
            return []
        jobs, key = self._jobs(payloads)
        async with self.server().async_jobs() as client:
            return self._handles(await client.create_alike(jobs, idempotency_key=key))

    async def submit_in_async(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Async variant of `submit_in`, for asyncpg, psycopg's `AsyncConnection`, and SQLAlchemy's `AsyncConnection`
        and `AsyncSession`."""
        return self._handle(await submit_in_async(connection, self._transactional(args, kwargs)), is_new=None)

    def _job(self, args: Sequence[Any], kwargs: Payload) -> Job:
        return job_of(self.fields(), self.payload_of(args, kwargs))

    def payload_of(self, args: Sequence[Any], kwargs: Payload, unknown: Unknown = is_template) -> Payload:
        """The payload of a call. Raises `Invalid` for arguments that the function does not take, where it is known."""
        signature = self.signature_of_task()
        if signature is not None:
            return signature.payload(args, kwargs, unknown=unknown)
        if args:
            raise Invalid("payload: pass arguments by name; the task's function is not here", field="payload")
        return kwargs

    def _jobs(self, payloads: Sequence[Payload]) -> tuple[Alike, str | None]:
        """The jobs, and the idempotency key, which applies to the whole batch."""
        fields = self.fields()
        key = fields.pop("idempotency_key", None)
        signature = self.signature_of_task()
        if signature is not None:
            payloads = signature.payloads(payloads, unknown=is_template)
        return Alike(fields, payloads), key

    def _transactional(self, args: Sequence[Any], kwargs: Payload) -> Job:
        job = in_current_trace(self._job(args, kwargs) | self.server().namespace_field())
        if "idempotency_key" in job:
            raise refusal("idempotency_key", IN_TRANSACTION["idempotency_key"])
        return job

    def _create(self, job: Job) -> Handle[R]:
        return self._created(self.server().jobs().create_job(job))

    async def _create_async(self, job: Job) -> Handle[R]:
        async with self.server().async_jobs() as client:
            return self._created(await client.create_job(job))

    def _created(self, answer: Answer) -> Handle[R]:
        return self._handle(answer.document["id"], is_new=answer.document["created"])

    def _handle(self, job_id: str, *, is_new: bool | None) -> Handle[R]:
        return Handle(job_id, server=self.server(), is_new=is_new, signature=self.signature_of_task())

    def _handles(self, made: Sequence[Made]) -> list[Handle[R]]:
        server, signature = self.server(), self.signature_of_task()
        return [Handle(job_id, server=server, is_new=is_new, signature=signature) for job_id, is_new in made]


class Prepared(Submitting[P, R]):
    """A task with options, as returned by `with_options`."""

    __slots__ = ("_fields", "_server", "_signature")

    def __init__(self, fields: Job, server: Server, signature: Signature | None = None) -> None:
        self._fields = fields
        self._server = server
        self._signature = signature

    def signature_of_task(self) -> Signature | None:
        return self._signature

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
