"""The yardstick: the same life of a job in plain SQL, with no scheduler around it.

A lean live table and a history fed by delete and insert, batches, claiming and completing overlapped on two connections, one asyncio task
a job. What Foliot reaches divided by what this reaches is its efficiency, however noisy the machine is.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec

from foliot.model.ids import new_id

SCHEMA = """
drop schema if exists yardstick cascade;
create schema yardstick;
create table yardstick.live (
    id uuid primary key, task text not null, queue text not null, state smallint not null, rank bigint not null,
    due_at timestamptz not null, token int not null default 0, worker uuid, priority int not null default 0,
    payload jsonb, options jsonb, created_at timestamptz not null default now(), started_at timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index on yardstick.live (queue, rank) where state = 1;
create table yardstick.done (like yardstick.live including defaults, finished_at timestamptz not null) partition by range (finished_at);
create table yardstick.done_all partition of yardstick.done for values from ('2000-01-01') to ('2100-01-01');
create index on yardstick.done_all (id);
"""
INSERT = """
insert into yardstick.live (id, task, queue, state, rank, due_at, payload)
select id, 'noop', 'default', 1, rank, now(), $3::jsonb from unnest($1::uuid[], $2::bigint[]) as given (id, rank)
"""
CLAIM = """
with ready as (
    select id from yardstick.live where queue = 'default' and state = 1 order by rank limit $1 for update skip locked
)
update yardstick.live l set state = 2, token = token + 1, worker = $2, started_at = clock_timestamp()
from ready where l.id = ready.id returning l.id, l.token, l.payload
"""
COMPLETE = """
with ended as (
    delete from yardstick.live l using unnest($1::uuid[], $2::int[]) as o (id, token)
    where l.id = o.id and l.token = o.token and l.worker = $3 and l.state = 2 returning l.*
)
insert into yardstick.done
select id, task, queue, 3, rank, due_at, token, worker, priority, payload, options, created_at, started_at, clock_timestamp() from ended
"""
INSERT_BATCH = 1000
CLAIM_BATCH = 500
COMPLETE_BATCH = 1000
decode = msgspec.json.Decoder().decode


async def noop(**_: object) -> None:
    return None


async def measure(url: str, *, jobs: int, payload: str) -> dict[str, float]:
    """Jobs a second that were inserted, and that went from ready to history; and the client's CPU time for the latter."""
    claiming, completing = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        await claiming.execute(SCHEMA)
        ids = [new_id() for _ in range(jobs)]
        began = time.perf_counter()
        for start in range(0, jobs, INSERT_BATCH):
            part = ids[start : start + INSERT_BATCH]
            await claiming.execute(INSERT, part, list(range(start, start + len(part))), payload)
        insert_seconds = time.perf_counter() - began
        await claiming.execute("analyze yardstick.live")
        began, cpu_before = time.perf_counter(), time.process_time()
        await _drain(claiming, completing)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_before
        kept = await claiming.fetchval("select count(*) from yardstick.done")
        if kept != jobs:
            raise RuntimeError(f"the yardstick lost jobs: {kept} of {jobs}")
        return {"insert_per_second": jobs / insert_seconds, "drain_per_second": jobs / seconds, "client_cpu_us": cpu / jobs * 1e6}
    finally:
        await claiming.execute("drop schema if exists yardstick cascade")
        await claiming.close()
        await completing.close()


async def _drain(claiming: Any, completing: Any) -> None:
    worker = uuid4()
    ended: list[tuple[UUID, int]] = []
    something, running, is_exhausted = asyncio.Event(), 0, False

    async def attempt(run: UUID, token: int, payload: str) -> None:
        nonlocal running
        await noop(**decode(payload))
        running -= 1
        ended.append((run, token))
        something.set()

    async def complete() -> None:
        while not (is_exhausted and not running and not ended):
            if not ended:
                something.clear()
                await something.wait()
                continue
            part = ended[:COMPLETE_BATCH]
            del ended[: len(part)]
            await completing.execute(COMPLETE, [run for run, _ in part], [token for _, token in part], worker)

    completer = asyncio.create_task(complete())
    tasks = set()
    while rows := await claiming.fetch(CLAIM, CLAIM_BATCH, worker):
        running += len(rows)
        for run, token, payload in rows:
            task = asyncio.create_task(attempt(run, token, payload))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    is_exhausted = True
    something.set()
    await completer
