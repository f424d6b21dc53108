"""`foliot.connect`: submits jobs by task name, to a server or directly to a database.

    with foliot.connect() as connection:
        job = connection.submit("send_invoice", {"customer_id": 7}, queue="mail")
        job.wait(timeout=60)

Each method has an async variant whose name ends in `_async`: `await connection.submit_async("send_invoice",
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
    """Returns a connection to a server (`http://...`, `https://...`) or a database (`postgresql://...`).

    The arguments default to FOLIOT_URL, FOLIOT_TOKEN and FOLIOT_NAMESPACE, and the URL to the server on this machine.
    The connection opens with the first request.

    With a database, you can submit one-off jobs, wait for them, cancel them and read their status. Everything else
    needs a server and raises `foliot.errors.ConfigurationError`.
    """
    if url is not None and not url.startswith(SCHEMES):
        raise ConfigurationError(
            f"{without_password(url)!r}: must begin with {', '.join(SCHEMES[:-2])} or {SCHEMES[-2]}"
        )
    return Connection(Server(url, token, namespace))


class Connection:
    """A connection, as returned by `foliot.connect`.

    Use it as a context manager, plain or async, or call `close`. Threads can share it.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        """The server, for `Workflow.submit(connection)`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Closing waits for connections to end, and must not block the caller's event loop.
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Closes open connections. The next request opens a new one."""
        self.server.close()

    @property
    def operations(self) -> Operations:
        """A new client of the whole HTTP API. Close it, or use it as a context manager."""
        return self.server.operations()

    def task(self, name: str, /, **options: Any) -> Prepared[..., Any]:
        """Returns a task by name, which submits jobs like a task of an app.

        `options` are the fields of a job in the API: `queue`, `priority`, `retries`, `timeout_seconds`, `unique`,
        `expires_at`, ...
        """
        fields = {field: _encoded(value) for field, value in options.items() if value is not None}
        return Prepared({"task": name} | fields, self.server)

    def handle(self, job_id: str) -> Handle[Any]:
        """Returns a handle of an existing job."""
        return Handle(str(job_id), server=self.server)

    def submit(self, task: str, payload: Payload | None = None, /, **options: Any) -> Handle[Any]:
        """Submits a job that starts as soon as a worker is free. See `task` for the options."""
        return self.task(task, **options).submit(**dict(payload or {}))

    def submit_at(
        self, task: str, when: datetime | timedelta, payload: Payload | None = None, /, **options: Any
    ) -> Handle[Any]:
        """Submits a job that starts at a time, or after a delay."""
        return self.task(task, **options).submit_at(when, **dict(payload or {}))

    def submit_many(self, task: str, payloads: Sequence[Payload], /, **options: Any) -> list[Handle[Any]]:
        """Submits up to 10,000 jobs in one transaction, and returns their handles in order."""
        return self.task(task, **options).submit_many(payloads)

    def submit_in(self, transaction: Any, task: str, payload: Payload | None = None, /, **options: Any) -> Handle[Any]:
        """Submits a job in your transaction: on a psycopg connection, or an SQLAlchemy connection or session.

        The job exists if and only if the transaction commits.
        """
        return self.task(task, **options).submit_in(transaction, **dict(payload or {}))

    def status(self, job_id: str) -> str:
        """Returns the status of a job. See `Handle.status`."""
        return self.handle(job_id).status()

    def wait(self, job_id: str, timeout: float | None = None) -> str:
        """Waits for a job to end and returns its status. Raises `TimeoutError` after `timeout` seconds."""
        return self.handle(job_id).wait(timeout)

    def result(self, job_id: str, timeout: float | None = None) -> Any:
        """Waits for a job and returns the task's return value. Raises `foliot.JobFailed` if it did not complete."""
        return self.handle(job_id).result(timeout)

    def cancel(self, job_id: str, reason: str | None = None, *, force: bool = False) -> str:
        """Cancels a job and returns its status. See `Handle.cancel`."""
        return self.handle(job_id).cancel(reason, force=force)

    async def submit_async(self, task: str, payload: Payload | None = None, /, **options: Any) -> Handle[Any]:
        return await self.task(task, **options).submit_async(**dict(payload or {}))

    async def submit_at_async(
        self, task: str, when: datetime | timedelta, payload: Payload | None = None, /, **options: Any
    ) -> Handle[Any]:
        return await self.task(task, **options).submit_at_async(when, **dict(payload or {}))

    async def submit_many_async(self, task: str, payloads: Sequence[Payload], /, **options: Any) -> list[Handle[Any]]:
        return await self.task(task, **options).submit_many_async(payloads)

    async def submit_in_async(
        self, transaction: Any, task: str, payload: Payload | None = None, /, **options: Any
    ) -> Handle[Any]:
        """Async variant of `submit_in`, for asyncpg, psycopg's `AsyncConnection`, and SQLAlchemy's `AsyncConnection`
        and `AsyncSession`."""
        return await self.task(task, **options).submit_in_async(transaction, **dict(payload or {}))

    async def status_async(self, job_id: str) -> str:
        return await self.handle(job_id).status_async()

    async def wait_async(self, job_id: str, timeout: float | None = None) -> str:
        return await self.handle(job_id).wait_async(timeout)

    async def result_async(self, job_id: str, timeout: float | None = None) -> Any:
        return await self.handle(job_id).result_async(timeout)

    async def cancel_async(self, job_id: str, reason: str | None = None, *, force: bool = False) -> str:
        return await self.handle(job_id).cancel_async(reason, force=force)


def _encoded(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
