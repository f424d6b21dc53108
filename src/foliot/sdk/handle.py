"""`Handle`: a submitted job."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Generic, cast

import msgspec

from foliot.errors import Invalid, JobFailed
from foliot.sdk.default_connection import Server
from foliot.sdk.type_variables import R


class Handle(msgspec.Struct, Generic[R], eq=False, gc=False):
    """A submitted job, as returned by `submit`. Each method has an async variant whose name ends in `_async`."""

    id: str
    server: Server
    is_new: bool | None = None
    """False if an idempotency key or a unique key matched an existing job; None (unknown) after `submit_in`."""
    signature: Any = None
    """The signature of the task's function, whose return annotation says how to read the result. None: unknown."""

    def __repr__(self) -> str:
        return f"<job {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def status(self) -> str:
        """Returns the current status.

        It is one of pending, scheduled, running, retrying, completed, failed, cancelled, skipped.
        """
        return str(self.server.jobs().get_job(self.id).document["status"])

    def wait(self, timeout: float | None = None) -> str:
        """Waits for the job to end and returns its status. Raises `TimeoutError` after `timeout` seconds."""
        return str(self.server.jobs().wait_for_job(self.id, timeout).document["status"])

    def result(self, timeout: float | None = None) -> R:
        """Waits for the job to complete and returns the task's return value, as its annotation says.

        Without an annotation, or if another version of the task returned something else, it is the JSON value.

        Raises:
            foliot.JobFailed: The job failed, or was cancelled or skipped.
            TimeoutError: The job did not end within `timeout` seconds.
        """
        return self._read(result_of(self.server.jobs().wait_for_job(self.id, timeout).document))

    def cancel(self, reason: str | None = None, *, force: bool = False) -> str:
        """Cancels the job and returns its status.

        A waiting job is cancelled at once. A running job is asked to stop; with `force`, it ends at once.
        """
        return str(self.server.jobs().cancel_run(self.id, reason=reason, force=force).document["status"])

    async def status_async(self) -> str:
        """Async variant of `status`."""
        async with self.server.async_jobs() as client:
            return str((await client.get_job(self.id)).document["status"])

    async def wait_async(self, timeout: float | None = None) -> str:
        """Async variant of `wait`."""
        async with self.server.async_jobs() as client:
            return str((await client.wait_for_job(self.id, timeout)).document["status"])

    async def result_async(self, timeout: float | None = None) -> R:
        """Async variant of `result`."""
        async with self.server.async_jobs() as client:
            return self._read(result_of((await client.wait_for_job(self.id, timeout)).document))

    async def cancel_async(self, reason: str | None = None, *, force: bool = False) -> str:
        """Async variant of `cancel`."""
        async with self.server.async_jobs() as client:
            return str((await client.cancel_run(self.id, reason=reason, force=force)).document["status"])

    def _read(self, value: Any) -> R:
        with suppress(Invalid):
            value = value if self.signature is None or value is None else self.signature.result.convert(value)
        return cast("R", value)


def result_of(job: Mapping[str, Any]) -> Any:
    if job["status"] == "completed":
        return plain(job["result"])
    error = job["error"] or {}
    why = f"{error['kind']}: {error['message']}" if error else str(job["reason"])
    raise JobFailed(
        f"job {job['id']} of task {job['task']!r} is {job['status']}: {why}", status=job["status"], error=dict(error)
    )


def plain(value: Any) -> Any:
    """Converts the client's `Document` objects to plain dicts."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value
