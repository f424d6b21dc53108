"""Pausing and resuming recurring jobs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest

from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.problems import JSON, problem_of
from tests.support.recurring import bad, call_job, create_job, get_job, interrupt_requests, job_path, succeed, ticks_of


async def test_a_paused_job_says_why_and_until_when(client: httpx.AsyncClient) -> None:
    created = await create_job(client, every="10m", name="report")
    paused = await succeed(client, "POST", "report", "/pause", reason="maintenance", until="2026-03-01T15:00:00+01:00")
    assert (paused["status"], paused["paused_reason"], paused["paused_until"]) == (
        "paused",
        "maintenance",
        "2026-03-01T14:00:00Z",
    )
    assert (paused["next_at"], paused["version"]) == (None, created["version"])
    assert await get_job(client, "report") == paused
    # Both fields are optional, and so is the body.
    await create_job(client, every="10m", name="other")
    paused = (await client.post(job_path("other", "/pause"), headers=JSON)).json()
    assert (paused["status"], paused["paused_reason"], paused["paused_until"]) == ("paused", None, None)


async def test_a_second_pause_changes_reason_and_end_and_resuming_an_active_job_changes_nothing(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    created = await create_job(client, every="10m", name="report")
    assert await succeed(client, "POST", "report", "/resume") == created | {"created": False}
    first = await succeed(client, "POST", "report", "/pause", reason="first", until="2026-03-02T00:00:00Z")
    await fake_clock.advance(60)
    second = await succeed(client, "POST", "report", "/pause", reason="second", until="2026-03-03T00:00:00Z")
    assert second == first | {"paused_reason": "second", "paused_until": "2026-03-03T00:00:00Z"}
    assert await sql.fetchval("select paused_at from foliot.jobs") == fake_clock.now() - timedelta(seconds=60)


async def test_an_invalid_pause_is_refused_with_its_field(client: httpx.AsyncClient) -> None:
    await create_job(client, every="10m", name="report")
    times = [
        "2026-03-01T12:00:00Z",
        "2020-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "2200-01-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00",
    ]
    cases = [bad("until", until=time) for time in [*times, "2026-03-02T00:00:00", "tomorrow", 5]]
    cases += [
        bad("reason", reason="r" * 1001),
        bad("reason", reason="\0"),
        bad("reason", reason=1),
        bad("why", why="x"),
    ]
    for case in cases:
        assert problem_of(await call_job(client, "POST", "report", "/pause", **case.fields)) == (
            422,
            "invalid",
            case.field,
        ), case
    assert (await get_job(client, "report"))["status"] == "active"


async def test_a_resumed_job_continues_after_now_and_its_missed_ticks_are_one_note(
    client: httpx.AsyncClient, fake_clock: FakeClock
) -> None:
    await create_job(client, every="10m", name="report")
    await succeed(client, "POST", "report", "/pause", reason="maintenance", until="2026-03-02T00:00:00Z")
    await fake_clock.advance(35 * 60)
    resumed = await succeed(client, "POST", "report", "/resume")
    assert (resumed["status"], resumed["next_at"], resumed["version"]) == ("active", "2026-03-01T12:40:00Z", 1)
    assert (resumed["paused_reason"], resumed["paused_until"]) == (None, None)
    expected = [("paused", "2026-03-01T12:10:00Z", "2026-03-01T12:30:00Z")]
    assert await ticks_of(client, "report") == expected
    # A pause without a due tick leaves no note.
    await succeed(client, "POST", "report", "/pause")
    await fake_clock.advance(5 * 60 - 1)
    assert (await succeed(client, "POST", "report", "/resume"))["next_at"] == "2026-03-01T12:40:00Z"
    assert await ticks_of(client, "report") == expected


async def test_a_paused_job_can_be_changed_and_stays_paused(client: httpx.AsyncClient, sql: Any) -> None:
    await create_job(client, every="10m", name="report")
    await succeed(client, "POST", "report", "/pause", reason="maintenance")
    changed = await succeed(client, "PATCH", "report", cron="0 15 * * *")
    assert (changed["status"], changed["paused_reason"], changed["version"]) == ("paused", "maintenance", 2)
    assert await sql.fetchval("select fire_at from foliot.jobs") is None
    assert (await succeed(client, "POST", "report", "/resume"))["next_at"] == "2026-03-01T15:00:00Z"


async def test_a_resume_overtaken_by_a_change_conflicts_and_one_overtaken_by_a_resume_succeeds(
    client: httpx.AsyncClient, store: Store, sql: Any, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_job(client, every="10m", name="report")
    await succeed(client, "POST", "report", "/pause")
    with monkeypatch.context() as patched:
        interrupt_requests(
            patched, store, lambda: sql.execute("update foliot.jobs set version = version + 1"), times=1000
        )
        assert problem_of(await call_job(client, "POST", "report", "/resume")) == (409, "conflict", None)
    await fake_clock.advance(35 * 60)
    answers = await asyncio.gather(*(succeed(client, "POST", "report", "/resume") for _ in range(5)))
    assert {answer["status"] for answer in answers} == {"active"}
    assert len(await ticks_of(client, "report")) == 1


async def test_pausing_and_resuming_do_not_revive_a_job_without_ticks(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    await create_job(client, every="10m", name="report", max_runs=1)
    await sql.execute("update foliot.jobs set runs_left = 0, fire_at = null, next_at = next_at + interval '10 min'")
    assert (await get_job(client, "report"))["status"] == "ended"
    assert (await succeed(client, "PATCH", "report", every="5m"))["status"] == "ended"
    await succeed(client, "POST", "report", "/pause")
    await fake_clock.advance(3600)
    assert (await succeed(client, "POST", "report", "/resume"))["status"] == "ended"
    assert await sql.fetchval("select fire_at from foliot.jobs") is None
    assert await ticks_of(client, "report") == []
    assert (await succeed(client, "GET", "report", "/next"))["items"] == []
