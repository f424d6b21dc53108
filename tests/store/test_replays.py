"""A replay with a canary: one run decides whether the others follow, whoever dies or does the same meanwhile."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from foliot.errors import Conflict
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store import replays
from foliot.store.store import Store
from tests.support.runs import WORKER, claim, finish

NS = Namespace()


async def dead(store: Store, count: int) -> list[UUID]:
    return [await finish(store, RunState.FAILED, error="no answer") for _ in range(count)]


async def start(store: Store, ids: list[UUID], **settings: Any) -> UUID:
    settings = {"payload": None, "apart_seconds": 0.0, "keeps_checkpoints": False, "is_repeated": False} | settings
    replay_id, _ = await store.replays.start_replay(NS, "ann", {one: new_id() for one in ids}, **settings)
    return replay_id


async def end_canary(store: Store, state: RunState) -> None:
    (claimed,) = await claim(store, count=5)
    assert await store.outcomes.finish_runs(WORKER, [Outcome(claimed.run_id, claimed.token, state)]) == 1


async def live(sql: Any) -> int:
    return int(await sql.fetchval("select count(*) from foliot.runs"))


async def test_the_others_follow_once_the_canary_has_succeeded(
    store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "BATCH", 2)
    ids = await dead(store, 6)
    replay_id = await start(store, ids, payload='{"fixed": true}')
    for _ in range(3):
        assert await store.replays.follow_replays() is None
    assert await live(sql) == 1
    assert (await store.pending_work.waits_in_use()).replays
    await end_canary(store, RunState.SUCCEEDED)
    assert await store.replays.follow_replays() == {"mail"}
    halfway = await store.replays.find_replay(NS, replay_id)
    assert halfway is not None
    assert (halfway.state, halfway.started, halfway.total, halfway.outcomes) == ("releasing", 3, 6, {"succeeded": 1})
    # Another node continues after this one has died.
    await asyncio.gather(*[store.replays.follow_replays() for _ in range(4)])
    while await store.replays.follow_replays() is not None:
        pass
    done = await store.replays.find_replay(NS, replay_id)
    assert done is not None
    assert (done.state, done.started) == ("done", 6)
    assert await live(sql) == 5
    assert {row[0] for row in await sql.fetch("select payload::text from foliot.runs")} == {'{"fixed": true}'}
    assert await sql.fetchval("select count(distinct rerun_as) from foliot.history where rerun_as is not null") == 6
    assert not (await store.pending_work.waits_in_use()).replays


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED, RunState.SKIPPED])
async def test_nothing_follows_a_canary_that_ends_otherwise(store: Store, sql: Any, state: RunState) -> None:
    replay_id = await start(store, await dead(store, 3))
    await end_canary(store, state)
    for _ in range(3):
        assert await store.replays.follow_replays() is None
    stopped = await store.replays.find_replay(NS, replay_id)
    assert stopped is not None
    assert (stopped.state, stopped.started, stopped.reason) == ("stopped", 1, f"its first run {state}")
    assert await live(sql) == 0
    assert await sql.fetchval("select count(*) from foliot.history where rerun_as is null and state = 'failed'") >= 2
    assert await store.replays.list_replays(NS, stopped.fingerprint, 10)


async def test_a_step_that_is_repeated_makes_no_run_twice(store: Store, sql: Any) -> None:
    """As after a node that dies between the runs and the note of them."""
    replay_id = await start(store, await dead(store, 3))
    await end_canary(store, RunState.SUCCEEDED)
    await store.replays.follow_replays()
    await sql.execute(
        "update foliot.replays set state = 'releasing', released = 1, started = 1, finished_at = null where id = $1",
        replay_id,
    )
    await store.replays.follow_replays()
    again = await store.replays.find_replay(NS, replay_id)
    assert again is not None
    assert (again.state, again.started, await live(sql)) == ("done", 3, 2)


async def test_a_replay_that_was_stopped_stays_stopped(store: Store, sql: Any) -> None:
    replay_id = await start(store, await dead(store, 3))
    assert not await store.replays.stop_replay(Namespace("theirs"), replay_id, "not ours")
    assert await store.replays.stop_replay(NS, replay_id, "ann stopped it")
    assert not await store.replays.stop_replay(NS, replay_id, "again")
    await end_canary(store, RunState.SUCCEEDED)
    assert await store.replays.follow_replays() is None
    assert await live(sql) == 0
    assert await store.replays.find_replay(Namespace("theirs"), replay_id) is None


async def test_one_replay_of_a_group_at_a_time(store: Store, sql: Any) -> None:
    ids = await dead(store, 4)
    outcomes = await asyncio.gather(*[start(store, ids) for _ in range(4)], return_exceptions=True)
    assert sorted(isinstance(one, Conflict) for one in outcomes) == [False, True, True, True]
    assert await live(sql) == 1


async def test_a_dead_letter_replayed_by_somebody_else_is_left_out(store: Store, sql: Any) -> None:
    other = await finish(store, RunState.SUCCEEDED)
    first, second, third = await dead(store, 3)
    replay_id = await start(store, [first, second, third])
    assert await store.dead_letters.rerun_runs(NS, {second: new_id()})
    with pytest.raises(Conflict, match="replayed"):
        await start(store, [other])
    for claimed in await claim(store, count=2):
        await store.outcomes.finish_runs(WORKER, [Outcome(claimed.run_id, claimed.token, RunState.SUCCEEDED)])
    await store.replays.follow_replays()
    done = await store.replays.find_replay(NS, replay_id)
    assert done is not None
    assert (done.state, done.started, done.total, await live(sql)) == ("done", 2, 3, 1)


async def test_the_rate_holds_across_batches(store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "BATCH", 2)
    await start(store, await dead(store, 6), apart_seconds=100.0)
    await end_canary(store, RunState.SUCCEEDED)
    while await store.replays.follow_replays() is not None:
        pass
    due = [row[0] for row in await sql.fetch("select due_at from foliot.runs order by due_at")]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(due)]
    assert len(due) == 5
    assert all(90 < gap < 110 for gap in gaps), gaps


async def test_a_canary_whose_day_was_pruned_stops_its_replay(store: Store, sql: Any) -> None:
    replay_id = await start(store, await dead(store, 2))
    await sql.execute("delete from foliot.runs")
    await store.replays.follow_replays()
    stopped = await store.replays.find_replay(NS, replay_id)
    assert stopped is not None
    assert (stopped.state, stopped.reason) == ("stopped", "its first run is gone")
    before = await sql.fetchval("select now() + interval '1 hour'")
    assert await store.replays.forget_replays(before) == 1
    assert await store.replays.find_replay(NS, replay_id) is None
