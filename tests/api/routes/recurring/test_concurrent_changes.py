"""Changes to a recurring job that race with each other or with a tick."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest

from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.problems import problem_of
from tests.support.recurring import call_job, create_job, get_job, interrupt_requests, succeed


async def test_concurrent_changes_are_applied_in_turn_or_refused(client: httpx.AsyncClient, sql: Any) -> None:
    await create_job(client, every="5m", name="report")
    made = 0
    for turn in range(1, 16):
        before = await get_job(client, "report")
        wanted: dict[str, Any] = {"priority": turn, "queue": f"queue-{turn}", "payload": {"turn": turn}}
        answers = await asyncio.gather(
            *(call_job(client, "PATCH", "report", **{field: value}) for field, value in wanted.items())
        )
        after = await get_job(client, "report")
        for (field, value), answer in zip(wanted.items(), answers, strict=True):
            assert answer.status_code == 200 or problem_of(answer) == (409, "conflict", None)
            assert after[field] == (value if answer.status_code == 200 else before[field])
        successes = sum(answer.status_code == 200 for answer in answers)
        assert successes >= 1
        assert after["version"] == before["version"] + successes
        made += successes
    assert await sql.fetchval("select array_agg(version order by version) from foliot.job_versions") == list(
        range(1, made + 2)
    )


async def test_an_overtaken_change_is_applied_to_the_new_state_of_the_job(
    client: httpx.AsyncClient, store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_job(client, every="5m", name="report")
    interrupt_requests(
        monkeypatch, store, lambda: sql.execute("update foliot.jobs set version = version + 1, priority = 9"), times=2
    )
    shown = await succeed(client, "PATCH", "report", queue="bulk")
    assert (shown["queue"], shown["priority"], shown["version"]) == ("bulk", 9, 4)


async def test_a_change_that_is_repeatedly_overtaken_is_refused(
    client: httpx.AsyncClient, store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_job(client, every="5m", name="report")
    interrupt_requests(
        monkeypatch, store, lambda: sql.execute("update foliot.jobs set version = version + 1"), times=1000
    )
    assert problem_of(await call_job(client, "PATCH", "report", queue="bulk")) == (409, "conflict", None)
    assert (await get_job(client, "report"))["queue"] == "mail"


async def test_a_tick_that_fires_during_a_change_is_neither_repeated_nor_noted(
    client: httpx.AsyncClient, store: Store, sql: Any, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create_job(client, every="10s", name="report")

    async def fire() -> None:
        await fake_clock.advance(10)
        await sql.execute(
            "update foliot.jobs set next_at = next_at + interval '10 s', fire_at = fire_at + interval '10 s'"
        )

    interrupt_requests(monkeypatch, store, fire, times=1)
    assert (await succeed(client, "PATCH", "report", priority=1))["next_at"] == "2026-03-01T12:00:20Z"
    assert await sql.fetchval("select count(*) from foliot.ticks") == 0


async def test_an_unfired_due_tick_is_noted_by_a_change(
    client: httpx.AsyncClient, sql: Any, fake_clock: FakeClock
) -> None:
    await create_job(client, every="10s", name="report")
    await fake_clock.advance(35)
    await succeed(client, "PATCH", "report", priority=1)
    (noted,) = await sql.fetch("select reason, until_at - tick_at from foliot.ticks")
    assert tuple(noted) == ("superseded", timedelta(seconds=20))
