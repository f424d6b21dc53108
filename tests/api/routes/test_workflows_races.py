"""Concurrency in workflows: steps end, are cancelled, expire and are signalled while workflows are cancelled and
redriven.

Nothing gets stuck or duplicated, ended runs do not change, and there are no deadlocks.
"""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import claim_runs, find_stuck
from tests.support.waiting import until
from tests.support.workflow_driver import Claimers, draw, insert
from tests.support.workflow_oracle import Seen, complaints, sum_up

WORKFLOWS = int(os.environ.get("RACE_WORKFLOWS", "60"))
SEED = int(os.environ.get("RACE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
MEDDLERS = 4
WORKER = new_id()
LATEST = """
select distinct on (step) step, state, reason, error ->> 'message' as message, started_at, finished_at
    from foliot.history
where parent_id = $1 order by step, created_at desc, id desc
"""


async def deadlocks(sql: Any) -> int:
    found: int = await sql.fetchval("select deadlocks from pg_stat_database where datname = current_database()")
    return found


class Meddler:
    """Performs random allowed operations on workflows."""

    def __init__(
        self, client: httpx.AsyncClient, store: Store, sql: Any, ids: list[UUID], chance: random.Random
    ) -> None:
        self._client = client
        self._store = store
        self._sql = sql
        self._ids = ids
        self._chance = chance
        self.is_over = False

    async def meddle(self) -> None:
        while not self.is_over:
            await asyncio.sleep(self._chance.uniform(0, 0.02))
            workflow_id = self._chance.choice(self._ids)
            what = self._chance.choice(
                ("redrive", "redrive", "redrive", "cancel", "step", "step", "step", "expire", "force", "signal")
            )
            if what in ("redrive", "cancel", "force"):
                verb, body = ("redrive", None) if what == "redrive" else ("cancel", {"force": what == "force"})
                answer = await self._client.post(f"/v1/workflows/{workflow_id}/{verb}", json=body)
                assert answer.status_code in (200, 201, 409), answer.text
                continue
            rows = await self._sql(
                "select id from foliot.runs where parent_id = $1 order by random() limit 1", workflow_id
            )
            if rows and what == "expire":
                await self._sql(
                    "update foliot.runs set expires_at = now() - interval '1 second' where id = $1 and started_at is "
                    "null",
                    rows[0][0],
                )
                await self._store.expiry.expire_runs(100)
            elif rows:
                answer = await self._client.post(f"/v1/runs/{rows[0][0]}/{'signal' if what == 'signal' else 'cancel'}")
                assert answer.status_code in (200, 404, 409), answer.text


@pytest.mark.timeout(180 + WORKFLOWS)
async def test_concurrent_interventions_leave_nothing_stuck_or_duplicated(
    store: Store, sql: Any, client: httpx.AsyncClient, app: Any
) -> None:
    print(f"RACE_SEED={SEED}")  # noqa: T201
    chance = random.Random(SEED)
    drawn = [draw(chance, most=30) for _ in range(WORKFLOWS)]
    for one in drawn:
        for step in one.definition["steps"]:
            if step["task"] == "step" and "map" not in step and "delay_seconds" not in step and chance.random() < 0.05:
                step["signal"] = {"timeout_seconds": 0.3, "on_timeout": "continue"}
    lock = asyncio.Lock()

    async def looked(query: str, *arguments: object) -> Any:
        async with lock:
            return await sql.fetch(query, *arguments)

    await store.workers.announce_tasks({"step": "default", "map": "default", "workflow": "default"})
    async with Claimers(store, chance, most=20) as claimers:
        ids = list(await asyncio.gather(*(insert(store, one.definition) for one in drawn)))
        meddler = Meddler(client, store, looked, ids, chance)
        meddling = [asyncio.create_task(meddler.meddle(), name="meddle") for _ in range(MEDDLERS)]
        await asyncio.sleep(min(20, 2 + WORKFLOWS / 30))
        before = {row[0]: row[1] for row in await looked("select id, state from foliot.history")}
        await asyncio.sleep(min(20, 2 + WORKFLOWS / 30))
        meddler.is_over = True
        await asyncio.gather(*meddling)
        await until(lambda: looked_at_end(sql), seconds=90 + WORKFLOWS / 2)
    assert claimers.stuck == []
    assert await find_stuck(store) == []
    after = {row[0]: row[1] for row in await sql.fetch("select id, state from foliot.history")}
    assert len(after) == await sql.fetchval("select count(*) from foliot.history"), "a run has ended twice"
    assert before.items() <= after.items()
    wrong = []
    for workflow_id, one in zip(ids, drawn, strict=True):
        seen = {row["step"]: Seen(*list(row)[1:]) for row in await sql.fetch(LATEST, workflow_id)}
        latest = await store.workflow_lists.get_parent(workflow_id)
        assert latest is not None
        if after[latest.run_id] != sum_up(end.state for end in seen.values()):
            wrong.append(f"{workflow_id} is {after[latest.run_id]} with {[end.state for end in seen.values()]}")
        wrong += [
            f"{workflow_id}: {complaint}"
            for complaint in complaints(one.given, seen, fails_fast=one.fails_fast, was_meddled_with=True)
            if "missing" in complaint or "if it runs" in complaint
        ]
    assert wrong == []
    assert await deadlocks(sql) == 0


async def looked_at_end(sql: Any) -> bool:
    return not await sql.fetchval("select exists (select from foliot.runs)")


@pytest.mark.parametrize("rule", ["all_success", "all_done", "one_success"])
async def test_two_simultaneous_ends_release_the_join_once(store: Store, sql: Any, rule: str) -> None:
    """Dependents are stranded here if neither of two transactions sees the other."""
    steps = [{"key": key, "task": "step", "queue": "default"} for key in ("a", "b")]
    join = {"key": "join", "task": "step", "queue": "default", "after": ["a", "b"], "rule": rule}
    ids = [await insert(store, {"steps": [*steps, join]}) for _ in range(20)]
    claims = await claim_runs(store, WORKER, {"default": 100}, ["step"])
    assert len(claims) == 40
    ends = [
        store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)]) for claim in claims
    ]
    assert await asyncio.gather(*ends) == [1] * 40
    joins = await claim_runs(store, WORKER, {"default": 100}, ["step"])
    assert len(joins) == len(ids)
    assert (
        await store.outcomes.finish_runs(
            WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED) for claim in joins]
        )
        == 20
    )
    assert (
        await sql.fetchval(
            "select count(*) from foliot.history where id = any ($1::uuid[]) and state = 'succeeded'", ids
        )
        == 20
    )
    assert await looked_at_end(sql)
