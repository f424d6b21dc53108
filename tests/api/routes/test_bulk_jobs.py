"""Pausing and resuming several recurring jobs by a filter: only matching jobs change, and only after a count."""

from __future__ import annotations

from typing import Any

import httpx
import pytest


@pytest.fixture
async def jobs(client: httpx.AsyncClient) -> None:
    for name, task in (
        ("report-a", "simulate"),
        ("report-b", "send_invoice"),
        ("report_c", "simulate"),
        ("other", "simulate"),
    ):
        assert (await client.post("/v1/jobs", json={"name": name, "task": task, "every": "1h"})).status_code == 201


async def paused(client: httpx.AsyncClient) -> set[str]:
    return {item["name"] for item in (await client.get("/v1/jobs")).json()["items"] if item["status"] == "paused"}


async def change(client: httpx.AsyncClient, verb: str, **group: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/jobs/{verb}", json=group)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"name": "report-*"}, {"report-a", "report-b"}),
        ({"name": "report?c"}, {"report_c"}),
        ({"name": "report_a"}, set()),
        ({"name": "*%*"}, set()),
        ({"name": "*", "task": "simulate"}, {"report-a", "report_c", "other"}),
        ({"queue": "mail"}, {"report-b"}),
        ({"name": "other"}, {"other"}),
    ],
    ids=["prefix", "one-character", "underscore-is-itself", "percent-is-itself", "task", "queue", "one"],
)
async def test_only_matching_jobs_are_paused_and_resumed(
    client: httpx.AsyncClient, jobs: None, group: dict[str, Any], expected: set[str]
) -> None:
    first = await change(client, "pause", **group, dry_run=True)
    assert (first["count"], set(first["names"]), first["dry_run"], await paused(client)) == (
        len(expected),
        expected,
        True,
        set(),
    )
    done = await change(client, "pause", **group, expected=first["count"], reason="maintenance")
    assert (set(done["names"]), await paused(client)) == (expected, expected)
    assert (await change(client, "pause", **group))["count"] == 0
    assert set((await change(client, "resume", **group))["names"]) == expected
    assert await paused(client) == set()


async def test_nothing_changes_unless_the_expected_number_matches(client: httpx.AsyncClient, jobs: None) -> None:
    answer = await client.post("/v1/jobs/pause", json={"name": "*", "expected": 3})
    assert (answer.status_code, await paused(client)) == (409, set())
    assert "4 jobs match now, not 3" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("pause", {}, "name"),
        ("pause", {"reason": "x"}, "name"),
        ("pause", {"name": "a\0"}, "name"),
        ("pause", {"name": "*", "until": "2001-01-01T00:00:00Z"}, "until"),
        ("resume", {"name": "*", "reason": "x"}, "reason"),
    ],
)
async def test_invalid_requests_are_refused(
    client: httpx.AsyncClient, verb: str, body: dict[str, Any], field: str
) -> None:
    answer = await client.post(f"/v1/jobs/{verb}", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
