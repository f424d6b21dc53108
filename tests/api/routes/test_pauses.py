"""Pauses over HTTP, of queues, of tasks and of everything."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from foliot.clock import Clock
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.invoices import claimed, submit


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is 2026-03-01, 12:00 UTC."""
    return fake_clock


@pytest.mark.parametrize(
    ("path", "kind", "name"),
    [
        ("/v1/queues/mail", "queue", "mail"),
        ("/v1/tasks/send_invoice", "task", "send_invoice"),
        ("/v1", "everything", ""),
    ],
)
async def test_paused_runs_start_only_after_a_resume(
    client: httpx.AsyncClient, store: Store, path: str, kind: str, name: str
) -> None:
    paused = await client.post(f"{path}/pause", json={"reason": "maintenance", "until": "2026-03-02T00:00:00Z"})
    shown = {
        "kind": kind, "name": name, "paused_at": "2026-03-01T12:00:00Z", "until_at": "2026-03-02T00:00:00Z",
        "reason": "maintenance",
        "actor": "local",
    }  # fmt: skip
    assert (paused.status_code, paused.json()) == (200, {"items": [shown]})
    assert (await submit(client)).status_code == 201
    assert await claimed(store) == 0
    again = await client.post(f"{path}/pause")
    assert again.json() == {"items": [shown | {"until_at": None, "reason": None}]}
    assert (await client.post(f"{path}/resume")).json() == {"items": []}
    assert (await client.post(f"{path}/resume")).status_code == 200
    assert await claimed(store) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"until": "2026-03-01T11:00:00Z"}, "until"),
        ({"until": "soon"}, "until"),
        ({"why": "x"}, "why"),
        ({"reason": "x" * 1001}, "reason"),
    ],
)
async def test_an_invalid_pause_is_refused(client: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    answer = await client.post("/v1/queues/mail/pause", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert (await client.get("/v1/pauses")).json() == {"items": []}


async def test_paused_jobs_stand_beside_the_other_pauses(client: httpx.AsyncClient, store: Store) -> None:
    for name in ("nightly", "hourly"):
        await client.post("/v1/jobs", json={"name": name, "cron": "0 3 * * *", "task": "send_invoice"})
    asked = {"reason": "the printer is out of paper", "until": "2026-03-02T00:00:00Z"}
    await client.post("/v1/jobs/nightly/pause", json=asked)
    await client.post("/v1/pause", json={})
    found = (await client.get("/v1/pauses")).json()
    assert [(one["kind"], one["name"]) for one in found["items"]] == [("everything", ""), ("job", "nightly")]
    paused = found["items"][1]
    assert (paused["reason"], paused["until_at"], paused["actor"]) == (asked["reason"], asked["until"], "local")
    assert paused["paused_at"] == "2026-03-01T12:00:00Z"
    assert "more" not in found
    # Another namespace sees the pause of everything only.
    elsewhere = (await client.get("/v1/pauses", headers={"Foliot-Namespace": "team"})).json()
    assert [one["kind"] for one in elsewhere["items"]] == ["everything"]
    await client.post("/v1/jobs/resume", json={"name": "nightly"})
    assert [one["kind"] for one in (await client.get("/v1/pauses")).json()["items"]] == ["everything"]
    await client.post("/v1/jobs/pause", json={"name": "hourly"})
    assert (await client.get("/v1/pauses")).json()["items"][1]["actor"] == "local"
