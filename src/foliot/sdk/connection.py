"""`foliot.connect`: the front door. One connection, to a server or straight to a database, for code that knows tasks by
their names.

    with foliot.connect() as connection:
        job = connection.submit("send_invoice", {"customer_id": 7}, queue="mail")
        job.wait(timeout=60)

Everything has a twin for async code, whose name ends in `_async`: `await connection.submit_async("send_invoice",
{"customer_id": 7})`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from foliot.config import without_password
from foliot.errors import ConfigurationError
from foliot.sdk.default_connection import DATABASE_SCHEMES, Server
from foliot.sdk.handle import Handle
from foliot.sdk.task_submission import Prepared

if TYPE_CHECKING:
    from foliot.sdk.operations import Operations

Payload = Mapping[str, Any]
SCHEMES = ("http://", "https://", *DATABASE_SCHEMES)


def connect(url: str | None = None, *, token: str | None = None, namespace: str | None = None) -> Connection:
    """A connection to the server at an `http(s)://` URL, or straight to the database at a `postgresql://` one.

    What is not given is taken from FOLIOT_URL, FOLIOT_TOKEN and FOLIOT_NAMESPACE; without those, it is the server on
    this machine. Nothing is connected before it is needed.

    Over a database, jobs that run once can be submitted, looked at, waited for and cancelled. What else there is needs
    a server, and says so by `foliot.errors.ConfigurationError`.
    """
    if url is not None and not url.startswith(SCHEMES):
        raise ConfigurationError(
            f"{without_password(url)!r}: must begin with {', '.join(SCHEMES[:-2])} or {SCHEMES[-2]}"
        )
    return Connection(Server(url, token, namespace))


class Connection:
    """What `foliot.connect` gives. Use it as a context manager, plain or async, or `close` it; it can be shared between
    threads."""

    def __init__(self, server: Server) -> None:
        self.server = server
        """For `Workflow.submit(connection)`, too."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Closing waits for connections to end, and the caller's loop must go on.
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Lets go of what is open. What is asked for next makes a new one."""
        self.server.close()

    @property
    def operations(self) -> Operations:
        """All that the HTTP API can do, as plain code calls it. To be closed, or used as a context manager."""
        return self.server.operations()

    def task(self, name: str, /, **options: Any) -> Prepared:
        """A task by its name, with options for its jobs by the names that the API has for them: `queue`, `priority`,
        `retries`, `timeout_seconds`, `unique`, `expires_at`, ... What is returned submits as a task of an app does."""
        fields = {field: _written(value) for field, value in options.items() if value is not None}
        return Prepared({"task": name} | fields, self.server)

    def handle(self, job_id: str) -> Handle:
        """A job that was submitted before, by whomever: to ask after, wait for or cancel."""
        return Handle(str(job_id), server=self.server)

    def submit(self, task: str, payload: Payload | None = None, /, **options: Any) -> Handle:
        """Submits a job, to start as soon as a worker is free."""
        return self.task(task, **options).submit(**dict(payload or {}))

    def submit_at(
        self, task: str, when: datetime | timedelta, payload: Payload | None = None, /, **options: Any
    ) -> Handle:
        """Submits a job that starts at an instant, or so much later."""
        return self.task(task, **options).submit_at(when, **dict(payload or {}))

    def submit_many(self, task: str, payloads: Sequence[Payload], /, **options: Any) -> list[Handle]:
        """Submits up to 10,000 jobs, all of them or none; a handle each, in their order."""
        return self.task(task, **options).submit_many(payloads)

    def submit_in(self, transaction: Any, task: str, payload: Payload | None = None, /, **options: Any) -> Handle:
        """Submits a job inside the transaction of a psycopg connection, or of a connection or session of SQLAlchemy."""
        return self.task(task, **options).submit_in(transaction, **dict(payload or {}))

    def status(self, job_id: str) -> str:
        """One of pending, scheduled, running, retrying, completed, failed, cancelled, skipped."""
        return self.handle(job_id).status()

    def wait(self, job_id: str, timeout: float | None = None) -> str:
        """Its status once it has ended, well or not. Raises `TimeoutError` when it has not so many seconds later."""
        return self.handle(job_id).wait(timeout)

    def result(self, job_id: str, timeout: float | None = None) -> Any:
        """Waits, and returns what the task returned. Raises `foliot.JobFailed` when it did not come to that."""
        return self.handle(job_id).result(timeout)

    def cancel(self, job_id: str, reason: str | None = None, *, force: bool = False) -> str:
        """Cancels a job: at once if it waits; a running one is asked to stop, and with `force` cut off. Its status
        thereafter."""
        return self.handle(job_id).cancel(reason, force=force)

    async def submit_async(self, task: str, payload: Payload | None = None, /, **options: Any) -> Handle:
        return await self.task(task, **options).submit_async(**dict(payload or {}))

    async def submit_at_async(
        self, task: str, when: datetime | timedelta, payload: Payload | None = None, /, **options: Any
    ) -> Handle:
        return await self.task(task, **options).submit_at_async(when, **dict(payload or {}))

    async def submit_many_async(self, task: str, payloads: Sequence[Payload], /, **options: Any) -> list[Handle]:
        return await self.task(task, **options).submit_many_async(payloads)

    async def submit_in_async(
        self, transaction: Any, task: str, payload: Payload | None = None, /, **options: Any
    ) -> Handle:
        """As `submit_in`, for asyncpg, psycopg's `AsyncConnection`, and SQLAlchemy's `AsyncConnection` and
        `AsyncSession`."""
        return await self.task(task, **options).submit_in_async(transaction, **dict(payload or {}))

    async def status_async(self, job_id: str) -> str:
        return await self.handle(job_id).status_async()

    async def wait_async(self, job_id: str, timeout: float | None = None) -> str:
        return await self.handle(job_id).wait_async(timeout)

    async def result_async(self, job_id: str, timeout: float | None = None) -> Any:
        return await self.handle(job_id).result_async(timeout)

    async def cancel_async(self, job_id: str, reason: str | None = None, *, force: bool = False) -> str:
        return await self.handle(job_id).cancel_async(reason, force=force)


def _written(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
