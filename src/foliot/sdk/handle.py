"""A job that was submitted, to be asked after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from foliot.errors import JobFailed
from foliot.sdk.default_connection import Server


class Handle(msgspec.Struct, eq=False, gc=False):
    """What `submit` returns. Each question has a twin for async code: `status_async`, `wait_async`, `result_async`,
    `cancel_async`."""

    id: str
    server: Server
    is_new: bool | None = None
    """False when an idempotency key or a unique key led to a job that was there already. None: not known, from inside a
    transaction."""

    def __repr__(self) -> str:
        return f"<job {self.id}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def status(self) -> str:
        """One of pending, scheduled, running, retrying, completed, failed, cancelled, skipped. Needs the server, as all
        questions do."""
        return str(self.server.jobs().get_job(self.id).document["status"])

    def wait(self, timeout: float | None = None) -> str:
        """Its status once it has ended, well or not. Raises `TimeoutError` when it has not so many seconds later."""
        return str(self.server.jobs().wait_for_job(self.id, timeout).document["status"])

    def result(self, timeout: float | None = None) -> Any:
        """Waits, and returns what the task returned. Raises `foliot.JobFailed` when it did not come to that."""
        return result_of(self.server.jobs().wait_for_job(self.id, timeout).document)

    def cancel(self, reason: str | None = None, *, force: bool = False) -> str:
        """Cancels it: at once if it waits; a running one is asked to stop, and with `force` cut off. Its status
        thereafter."""
        return str(self.server.jobs().cancel_run(self.id, reason=reason, force=force).document["status"])

    async def status_async(self) -> str:
        async with self.server.async_jobs() as client:
            return str((await client.get_job(self.id)).document["status"])

    async def wait_async(self, timeout: float | None = None) -> str:
        async with self.server.async_jobs() as client:
            return str((await client.wait_for_job(self.id, timeout)).document["status"])

    async def result_async(self, timeout: float | None = None) -> Any:
        async with self.server.async_jobs() as client:
            return result_of((await client.wait_for_job(self.id, timeout)).document)

    async def cancel_async(self, reason: str | None = None, *, force: bool = False) -> str:
        async with self.server.async_jobs() as client:
            return str((await client.cancel_run(self.id, reason=reason, force=force)).document["status"])


def result_of(job: Mapping[str, Any]) -> Any:
    if job["status"] == "completed":
        return plain(job["result"])
    error = job["error"] or {}
    why = f"{error['kind']}: {error['message']}" if error else str(job["reason"])
    raise JobFailed(
        f"job {job['id']} of task {job['task']!r} is {job['status']}: {why}", status=job["status"], error=dict(error)
    )


def plain(value: Any) -> Any:
    """Without the client's own kind of dict in it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value
