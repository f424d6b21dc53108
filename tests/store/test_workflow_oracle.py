"""Random workflows against the oracle, directly through the store: many concurrent claimers, random order and batches,
and some lost runs."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any
from uuid import UUID

import pytest

from foliot.store.store import Store
from tests.support.runs import find_stuck
from tests.support.waiting import until
from tests.support.workflow_driver import Claimers, Drawn, draw, insert, seen_of
from tests.support.workflow_oracle import complaints, sum_up

WORKFLOWS = int(os.environ.get("ORACLE_WORKFLOWS", "300"))
SEED = int(os.environ.get("ORACLE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
AT_ONCE = 100


async def nothing_left(sql: Any) -> bool:
    return not await sql.fetchval("select exists (select from foliot.runs)")


async def at_most(sql: Any, number: int) -> bool:
    return bool(await sql.fetchval("select count(*) <= $1 from foliot.parents where finished_at is null", number))


async def deadlocks(sql: Any) -> int:
    """The number of deadlocks in this database. The statistics of other sessions arrive once these are idle."""
    await sql.execute("select pg_stat_clear_snapshot()")
    found: int = await sql.fetchval("select deadlocks from pg_stat_database where datname = current_database()")
    return found


@pytest.mark.timeout(180 + WORKFLOWS // 5)
async def test_random_workflows_end_as_predicted(store: Store, sql: Any) -> None:
    print(f"ORACLE_SEED={SEED}")  # noqa: T201
    chance = random.Random(SEED)
    drawn: dict[UUID, Drawn] = {}
    async with Claimers(store, chance) as claimers:
        for start in range(0, WORKFLOWS, AT_ONCE):
            await until(lambda: at_most(sql, 200))
            batch = [draw(chance) for _ in range(min(AT_ONCE, WORKFLOWS - start))]
            ids = await asyncio.gather(*(insert(store, one.definition) for one in batch))
            drawn |= dict(zip(ids, batch, strict=True))
        await until(lambda: nothing_left(sql), seconds=90 + WORKFLOWS / 10)
    assert claimers.stuck == []
    assert await find_stuck(store) == []
    ends = {
        row[0]: row[1]
        for row in await sql.fetch("select id, state from foliot.history where id = any ($1::uuid[])", list(drawn))
    }
    wrong = []
    for workflow_id, one in drawn.items():
        seen = await seen_of(sql, workflow_id)
        wrong += [(one.definition, complaint) for complaint in complaints(one.given, seen, fails_fast=one.fails_fast)]
        if ends[workflow_id] != sum_up(end.state for end in seen.values()):
            wrong.append((one.definition, f"the workflow is {ends[workflow_id]}"))
    assert wrong == []
    assert (
        await sql.fetchval(
            "select count(*) from (select id from foliot.history group by id having count(*) > 1) as twice"
        )
        == 0
    )
    assert await sql.fetchval("select count(*) from foliot.dependencies") == 0
    assert await deadlocks(sql) == 0
