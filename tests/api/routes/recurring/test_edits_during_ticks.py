"""Changes that collide with a firing, or with each other, at the worst moment: between the read and the write of a
request."""

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
    """Runs a function once between the read and the write of a request. It gets the write as an argument."""
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
    """Fires due ticks and ends their runs."""
    await keeper.run_once()
    due, _ = await store.ticks.due_jobs(list(keeper.epochs), 10, 0.0)
    planner = Planner(to_instant(await store.jobs.database_now()))
    fired = await store.ticks.fire_ticks(keeper.scheduler_id, keeper.epochs, [planner.firing_of(job) for job in due])
    claims = await claim_runs(store, keeper.scheduler_id, {"default": 10}, ["t"])
    await store.outcomes.finish_runs(
        keeper.scheduler_id, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED) for claim in claims]
    )
    return fired.fired


async def test_a_tick_that_becomes_due_during_a_change_is_recorded(
    client: httpx.AsyncClient, store: Store, fake_clock: FakeClock, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await make_job(store, every="10s", overlap="allow_all")
    await fake_clock.advance(9.99)

    async def ten_seconds_are_over(_: object) -> None:
        await fake_clock.advance(0.02)

    just_before(monkeypatch, store, "change_job", ten_seconds_are_over)
    assert (await client.patch(f"/v1/jobs/{job.id}", json={"every": "60s"})).status_code == 200
    # By the schedule in force until 10.01 seconds, there was a tick at ten.
    await assert_sound(sql)


async def test_a_change_during_a_firing_does_not_handle_the_tick_again(
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


async def test_a_resume_overtaken_by_a_resume_and_a_pause_changes_nothing(
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
    # If the cursor had moved back, the tick at twenty seconds would fire again.
    await fire(store, keeper)
    await assert_sound(sql)
    assert await sql.fetchval("select max(count) from (select count(*) from foliot.history group by id) as ended") == 1
