"""Recurring jobs over HTTP, for tests: requests, expected problems, and bad schedules."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = new_id()
TASKS = ["send_invoice", "shell", "simulate"]
JOB_ROUTES = [
    ("PATCH", ""),
    ("DELETE", ""),
    ("POST", "/pause"),
    ("POST", "/resume"),
    ("POST", "/trigger"),
    ("GET", "/ticks"),
    ("GET", "/next"),
]


def job_path(reference: str, rest: str = "") -> str:
    return f"/v1/jobs/{quote(reference, safe='')}{rest}"


async def create_job(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/jobs", json={"task": "send_invoice", **fields})
    assert answer.status_code == 201, answer.text
    job: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    return job


async def call_job(
    client: httpx.AsyncClient, method: str, reference: str, rest: str = "", **body: Any
) -> httpx.Response:
    return await client.request(method, job_path(reference, rest), json=None if method == "GET" else body)


async def succeed(
    client: httpx.AsyncClient, method: str, reference: str, rest: str = "", **body: Any
) -> dict[str, Any]:
    answer = await call_job(client, method, reference, rest, **body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def get_job(client: httpx.AsyncClient, reference: str) -> dict[str, Any]:
    return await succeed(client, "GET", reference)


async def ticks_of(client: httpx.AsyncClient, reference: str, query: str = "") -> list[tuple[str, str, str | None]]:
    found = (await client.get(job_path(reference, "/ticks") + query)).json()["items"]
    return [(tick["outcome"], tick["tick_at"], tick["until_at"]) for tick in found]


async def end_runs(store: Store) -> int:
    claims = await claim_runs(store, WORKER, {"mail": 100, "default": 100, "bulk": 100}, TASKS)
    return await store.outcomes.finish_runs(
        WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED) for claim in claims]
    )


@dataclass(frozen=True)
class BadFields:
    """Fields that make a good body bad, and the field that the error must name."""

    field: str
    fields: dict[str, Any]
    code: str = "invalid"


def bad(field: str, code: str = "invalid", **fields: Any) -> BadFields:
    return BadFields(field, fields, code)


BAD_CRON = [
    *[
        "0 24 * * *",
        "60 * * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "* * * *",
        "* * * * * * * *",
        "@never",
        "@reboot",
        "nonsense",
    ],
    *["*/0 * * * *", "5-1 * * * *", "0 0 30 2 *", "0 0 31 4,6 *", "٣ * * * *", " "],
]


def interrupt_requests(
    monkeypatch: pytest.MonkeyPatch, store: Store, happens: Callable[[], Awaitable[object]], *, times: int
) -> None:
    """Runs an action a number of times after a request has read the job and the time, and before it writes."""
    read = store.jobs.database_now
    left = itertools.repeat(None, times)

    async def read_and_wait() -> datetime:
        now = await read()
        for _ in left:
            await happens()
            break
        return now

    monkeypatch.setattr(store.jobs, "database_now", read_and_wait)
