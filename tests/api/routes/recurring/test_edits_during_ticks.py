"""Edits that meet a firing, or one another, at the worst moment: between what a request has read and what it writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from foliot.config import Config
from foliot.events import EventBus
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.scheduler.planner import Planner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.runs import claim_runs
from tests.support.ticks import assert_sound


@pytest.fixture
def keeper(store: Store, config: Config, events: EventBus, fake_clock: FakeClock) -> ShardKeeper:
    return ShardKeeper(store=store, config=config, clock=fake_clock, events=events)


Meeting = Callable[[Callable[[], Awaitable[Any]]], Awaitable[None]]


def just_before(monkeypatch: pytest.MonkeyPatch, store: Store, method: str, happens: Meeting) -> None:
    """Something happens once between the reading and the writing of a request. It is handed the write, should another
    make the same."""
    write = getattr(store.jobs, method)
    is_first = True

    async def meet(*arguments: Any, **named: Any) -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            await happens(lambda: write(*arguments, **named))
        return await write(*arguments, **named)

    monkeypatch.setattr(store.jobs, method, meet)


async def fire(store: Store, keeper: ShardKeeper) -> int:
    """Fires what is due, and ends its runs."""
    await keeper.run_once()
    due, _ = await store.jobs.due_jobs(list(keeper.epochs), 10, 0.0)
    planner = Planner(to_instant(await store.jobs.database_now()))
    fired = await store.jobs.fire_ticks(keeper.scheduler_id, keeper.epochs, [planner.firing_of(job) for job in due])
    claims = await claim_runs(store, keeper.scheduler_id, {"default": 10}, ["t"])
    await store.runs.finish_runs(
        keeper.scheduler_id, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED) for claim in claims]
    )
    return fired.fired


async def test_a_tick_that_falls_due_while_a_change_is_on_its_way_is_not_silent(
    client: httpx.AsyncClient, store: Store, fake_clock: FakeClock, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await fake_clock.advance(9.99)

    async def ten_seconds_are_over(_: object) -> None:
        await fake_clock.advance(0.02)

    just_before(monkeypatch, store, "change_job", ten_seconds_are_over)
    assert (await client.patch(f"/v1/jobs/{job.id}", json={"every": "60s"})).status_code == 200
    # By the schedule that was in force until 10.01 seconds, there was a tick at ten.
    await assert_sound(sql)


async def test_a_change_that_meets_a_firing_does_not_deal_with_the_tick_once_more(
    client: httpx.AsyncClient,
    store: Store,
    fake_clock: FakeClock,
    keeper: ShardKeeper,
    sql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await fake_clock.advance(10.01)

    async def it_fires(_: object) -> None:
        assert await fire(store, keeper) == 1
        await fake_clock.advance(0.01)

    just_before(monkeypatch, store, "change_job", it_fires)
    assert (await client.patch(f"/v1/jobs/{job.id}", json={"every": "60s"})).json()["version"] == 2
    (story,) = await assert_sound(sql)
    assert (len(story.runs), story.notes) == (1, ())


async def test_a_resumption_that_meets_another_one_and_another_pause_changes_nothing(
    client: httpx.AsyncClient,
    store: Store,
    fake_clock: FakeClock,
    keeper: ShardKeeper,
    sql: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await store.jobs.pause_job(job.id, None, None)
    await fake_clock.advance(15)

    async def another_resumes_it_and_it_fires_and_is_paused(resume: Callable[[], Awaitable[Any]]) -> None:
        assert await resume()
        await fake_clock.advance(6)
        assert await fire(store, keeper) == 1
        assert await store.jobs.pause_job(job.id, "once more", None)

    just_before(monkeypatch, store, "resume_job", another_resumes_it_and_it_fires_and_is_paused)
    await client.post(f"/v1/jobs/{job.id}/resume", json={})
    # Had the cursor gone back, the tick at twenty seconds would fire once more.
    await fire(store, keeper)
    await assert_sound(sql)
    assert await sql.fetchval("select max(count) from (select count(*) from foliot.history group by id) as ended") == 1
