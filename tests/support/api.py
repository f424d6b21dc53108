"""Talks to a running Foliot over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tests.support.processes import FoliotProcess
from tests.support.waiting import PATIENCE_SECONDS, until

TERMINAL = {"completed", "failed", "cancelled", "skipped"}


class Api:
    def __init__(self, client: httpx.AsyncClient, headers: Mapping[str, str] | None = None) -> None:
        self.client = client
        self.headers = dict(headers or {})

    async def submit(self, **fields: Any) -> dict[str, Any]:
        answer = await self.client.post("/v1/jobs", json=fields, headers=self.headers)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def get(self, job_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/v1/jobs/{job_id}", headers=self.headers)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def status(self, job_id: str, status: str, *, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            job = await self.get(job_id)
            return job if job["status"] == status else None

        job = await until(look, seconds=seconds)
        assert job is not None
        return job

    async def ended(self, job_id: str, *, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            job = await self.get(job_id)
            return job if job["status"] in TERMINAL else None

        job = await until(look, seconds=seconds)
        assert job is not None
        return job


@asynccontextmanager
async def api_of(process: FoliotProcess, part: str = "up") -> AsyncIterator[Api]:
    """Waits until the process serves, and returns a client of its API."""
    started = await process.event("ProcessStarted", part=part)
    async with httpx.AsyncClient(base_url=started["address"], timeout=PATIENCE_SECONDS) as client:
        yield Api(client)
