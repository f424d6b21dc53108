"""Many small workflows at once, and large ones that are wide, deep, or fail at the first step. Nothing gets stuck or
recurses."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs, find_stuck
from tests.support.waiting import until
from tests.support.workflow_driver import Claimers, insert

DIAMONDS = int(os.environ.get("WORKFLOW_DIAMONDS", "200"))
WIDE = int(os.environ.get("WORKFLOW_WIDTH", "2000"))
DEEP = int(os.environ.get("WORKFLOW_DEPTH", "2000"))
WORKER = new_id()


def step(key: str, *after: str, fails: bool = False, **fields: Any) -> dict[str, Any]:
    return {"key": key, "task": "step", "queue": "default", "payload": {"fails": fails}, "after": list(after), **fields}


async def states(sql: Any, workflow_id: UUID) -> Counter[str]:
    rows = await sql.fetch(
        "select state, count(*) from foliot.history where parent_id = $1 group by state", workflow_id
    )
    return Counter({row[0]: row[1] for row in rows})


async def end_of(sql: Any, workflow_id: UUID) -> str | None:
    found: str | None = await sql.fetchval("select state from foliot.history where id = $1", workflow_id)
    return found


async def fail_first(store: Store, workflow_id: UUID) -> None:
    (claim,) = await claim_runs(store, WORKER, {"default": 100}, ["step"])
    assert await store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.FAILED, "error")]) == 1


@pytest.mark.timeout(180 + DIAMONDS // 10)
async def test_many_concurrent_diamonds_all_end(store: Store, sql: Any) -> None:
    diamond = {"steps": [step("first"), step("left", "first"), step("right", "first"), step("last", "left", "right")]}
    async with Claimers(store, random.Random(1)) as claimers:
        for start in range(0, DIAMONDS, 50):
            await asyncio.gather(*(insert(store, diamond) for _ in range(min(50, DIAMONDS - start))))
        await until(lambda: sql.fetchval("select not exists (select from foliot.runs)"), seconds=90 + DIAMONDS / 10)
    assert claimers.stuck == []
    rows = await sql.fetch("select coalesce(step, 'workflow'), state, count(*) from foliot.history group by 1, 2")
    expected = {(name, "succeeded", DIAMONDS) for name in ("first", "left", "right", "last", "workflow")}
    assert {tuple(row) for row in rows} == expected


@pytest.mark.timeout(180 + WIDE // 50)
async def test_a_wide_join_starts_once_after_all_its_steps(store: Store, sql: Any) -> None:
    keys = [f"s{number}" for number in range(WIDE)]
    async with Claimers(store, random.Random(2), most=500) as claimers:
        workflow_id = await insert(store, {"steps": [*(step(key) for key in keys), step("join", *keys)]})
        await until(lambda: end_of(sql, workflow_id), seconds=90 + WIDE / 100)
    assert claimers.stuck == []
    assert await states(sql, workflow_id) == {"succeeded": WIDE + 1}
    assert await sql.fetchval(
        """
        select (select started_at from foliot.history where step = 'join') >= max(finished_at) from foliot.history
        where parent_id = $1 and step <> 'join'
        """,
        workflow_id,
    )


@pytest.mark.parametrize(
    "rules",
    [("all_success",), ("one_success", "all_success"), ("none_failed_min_one_success", "one_success")],
    ids="-".join,
)
@pytest.mark.timeout(180 + DEEP // 100)
async def test_a_deep_chain_is_skipped_at_once_when_its_first_step_fails(
    store: Store, sql: Any, rules: tuple[str, ...]
) -> None:
    chain = [step(f"s{n}", *([f"s{n - 1}"] if n else []), rule=rules[n % len(rules)]) for n in range(DEEP)]
    workflow_id = await insert(store, {"steps": chain})
    await fail_first(store, workflow_id)
    assert await end_of(sql, workflow_id) == "failed"
    assert await states(sql, workflow_id) == {"failed": 1, "skipped": DEEP - 1}
    reasons = await sql.fetch("select distinct error ->> 'message' from foliot.history where state = 'skipped'")
    assert [row[0] for row in reasons] == ["dependency_failed: s0"]
    assert await find_stuck(store) == []


@pytest.mark.timeout(180 + DEEP // 100)
async def test_a_ladder_of_steps_with_two_failed_upstreams_is_skipped_step_by_step(store: Store, sql: Any) -> None:
    rungs = DEEP // 4
    ladder = [step("s0")]
    for rung in range(rungs):
        before = ["s0"] if rung == 0 else [f"a{rung - 1}", f"b{rung - 1}"]
        ladder += [step(f"a{rung}", *before, rule="one_success"), step(f"b{rung}", *before, rule="one_success")]
    workflow_id = await insert(store, {"steps": ladder})
    await fail_first(store, workflow_id)
    assert await end_of(sql, workflow_id) == "failed"
    assert await states(sql, workflow_id) == {"failed": 1, "skipped": 2 * rungs}
    assert await find_stuck(store) == []


async def test_a_deep_chain_runs_in_order(store: Store, sql: Any) -> None:
    depth = min(DEEP, 300)
    async with Claimers(store, random.Random(3), number=2, loses=False) as claimers:
        workflow_id = await insert(
            store, {"steps": [step(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(depth)]}
        )
        await until(lambda: end_of(sql, workflow_id))
    assert claimers.stuck == []
    ordered = await sql.fetch("select step from foliot.history where parent_id = $1 order by started_at", workflow_id)
    assert [row[0] for row in ordered] == [f"s{n}" for n in range(depth)]
