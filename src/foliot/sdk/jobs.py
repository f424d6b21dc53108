"""The interface of clients for one-off jobs, over HTTP or directly in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, overload

if TYPE_CHECKING:
    from foliot.sdk.http_protocol import Answer


class Alike(Sequence[dict[str, Any]]):
    """Jobs that differ only in their payloads, so that their common fields are checked once."""

    def __init__(self, fields: dict[str, Any], payloads: Sequence[Mapping[str, Any]]) -> None:
        self.fields = fields
        self.payloads = payloads

    def __len__(self) -> int:
        return len(self.payloads)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> Alike: ...

    def __getitem__(self, place: int | slice) -> dict[str, Any] | Alike:
        if isinstance(place, slice):
            return Alike(self.fields, self.payloads[place])
        return job_of(self.fields, self.payloads[place])


Made = tuple[str, bool]
"""The id of a job, and whether it is new."""


def job_of(fields: dict[str, Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    return fields | ({"payload": dict(payload)} if payload else {})


class Jobs(Protocol):
    def create_job(self, job: Mapping[str, Any]) -> Answer: ...

    def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]: ...

    def get_job(self, reference: str) -> Answer: ...

    def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer: ...

    def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer: ...

    def close(self) -> None: ...


class AsyncJobs(Protocol):
    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def create_job(self, job: Mapping[str, Any]) -> Answer: ...

    async def create_alike(self, jobs: Alike, *, idempotency_key: str | None = None) -> list[Made]: ...

    async def get_job(self, reference: str) -> Answer: ...

    async def wait_for_job(self, job_id: str, timeout: float | None = None) -> Answer: ...

    async def cancel_run(self, run_id: str, *, reason: str | None = None, force: bool = False) -> Answer: ...
