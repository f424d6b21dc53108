"""The baseline: the same life of a job in plain SQL, without a scheduler.

It uses a lean live table, a history that is filled by delete and insert, batches, two connections so that claiming and
completing overlap, and one asyncio task for each job. Foliot's throughput divided by this one is its efficiency, on
however noisy a machine.

It runs in a process of its own, so that the measuring process does not slow it down: `python -m benchmarks.raw_sql URL
JOBS`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from asyncio.subprocess import PIPE
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
import uvloop

from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from foliot.model.ids import new_id

PAYLOAD = json.dumps({"to": "someone@example.com", "n": 1, "text": "x" * 150})
"""Of every job here, Foliot's and others'."""

SCHEMA = """
drop schema if exists yardstick cascade;
create schema yardstick;
create table yardstick.live (
    id uuid primary key, task text not null, queue text not null, state smallint not null, rank bigint not null,
    due_at timestamptz not null, token int not null default 0, worker uuid, priority int not null default 0,
    payload jsonb, options jsonb, created_at timestamptz not null default now(), started_at timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
create index on yardstick.live (queue, rank) where state = 1;
create table yardstick.done (like yardstick.live including defaults, finished_at timestamptz not null)
    partition by range (finished_at);
create table yardstick.done_all partition of yardstick.done for values from ('2000-01-01') to ('2100-01-01');
create index on yardstick.done_all (id);
"""
INSERT = """
insert into yardstick.live (id, task, queue, state, rank, due_at, payload)
select id, 'noop', 'default', 1, rank, now(), $3::jsonb from unnest($1::uuid[], $2::bigint[]) as given (id, rank)
"""
CLAIM = """
with ready as (
    select id from yardstick.live where queue = $1 and state = 1 order by rank limit $2 for update skip locked
)
update yardstick.live l set state = 2, token = token + 1, worker = $3, started_at = clock_timestamp()
from ready where l.id = ready.id returning l.id, l.task, l.payload, l.token
"""
COMPLETE = """
with ended as (
    delete from yardstick.live l using unnest($1::uuid[], $2::int[]) as o (id, token)
    where l.id = o.id and l.token = o.token and l.worker = $3 and l.state = 2 returning l.*
)
insert into yardstick.done
select id, task, queue, 3, rank, due_at, token, worker, priority, payload, options, created_at, started_at,
    clock_timestamp() from ended
"""
INSERT_BATCH = 1000
CLAIM_BATCH = 500
COMPLETE_BATCH = 1000
decode = msgspec.json.Decoder().decode


async def noop(**_: object) -> None:
    return None


class Limit(msgspec.Struct, frozen=True):
    """Jobs a second that were inserted, that went from ready to history, and that did both; and the CPU time of going
    from ready to history."""

    insert_per_second: float
    drain_per_second: float
    client_us: float
    postgres_us: float | None = None

    @property
    def life_per_second(self) -> float:
        return 1 / (1 / self.insert_per_second + 1 / self.drain_per_second)


async def limit(bench: Bench, jobs: int) -> Limit:
    meter = Meter({"postgres": [bench.postmaster]})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.raw_sql", bench.url, str(jobs), stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # It stops before it drains, so that PostgreSQL's CPU time can be read, and continues when it reads a line.
    inserted = await process.stdout.readline()
    meter.start()
    process.stdin.write(b"drain\n")
    drained = await process.stdout.readline()
    meter.stop()
    process.stdin.close()
    if await process.wait() != 0:
        raise RuntimeError(f"the yardstick ended with exit code {process.returncode}")
    return msgspec.convert(json.loads(inserted) | json.loads(drained) | meter.microseconds(jobs), Limit)


def mean(before: Limit, after: Limit) -> Limit:
    """The mean of a measurement before and one after, because the machine may change its speed."""
    no_cpu = before.postgres_us is None or after.postgres_us is None
    return Limit(
        insert_per_second=(before.insert_per_second + after.insert_per_second) / 2,
        drain_per_second=(before.drain_per_second + after.drain_per_second) / 2,
        client_us=(before.client_us + after.client_us) / 2,
        postgres_us=None if no_cpu else ((before.postgres_us or 0) + (after.postgres_us or 0)) / 2,
    )


async def measure(url: str, jobs: int) -> None:
    claiming, completing = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        await claiming.execute(SCHEMA)
        ids = [new_id() for _ in range(jobs)]
        began = time.perf_counter()
        for start in range(0, jobs, INSERT_BATCH):
            part = ids[start : start + INSERT_BATCH]
            await claiming.execute(INSERT, part, list(range(start, start + len(part))), PAYLOAD)
        insert_seconds = time.perf_counter() - began
        await claiming.execute("analyze yardstick.live")
        print(json.dumps({"insert_per_second": jobs / insert_seconds}), flush=True)
        sys.stdin.readline()
        began, cpu_before = time.perf_counter(), time.process_time()
        await _drain(claiming, completing)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu_before
        kept = await claiming.fetchval("select count(*) from yardstick.done")
        if kept != jobs:
            raise RuntimeError(f"the yardstick lost jobs: {kept} of {jobs}")
        print(json.dumps({"drain_per_second": jobs / seconds, "client_us": cpu / jobs * 1e6}), flush=True)
    finally:
        await claiming.execute("drop schema if exists yardstick cascade")
        await claiming.close()
        await completing.close()


async def _drain(claiming: Any, completing: Any) -> None:
    worker, tasks = uuid4(), {"noop": noop}
    ended: list[tuple[UUID, int]] = []
    something, running, is_exhausted = asyncio.Event(), 0, False

    async def attempt(task: str, run: UUID, token: int, payload: str) -> None:
        nonlocal running
        await tasks[task](**decode(payload))
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
    attempts = set()
    while rows := await claiming.fetch(CLAIM, "default", CLAIM_BATCH, worker):
        running += len(rows)
        for run, task, payload, token in rows:
            one = asyncio.create_task(attempt(task, run, token, payload))
            attempts.add(one)
            one.add_done_callback(attempts.discard)
    is_exhausted = True
    something.set()
    await completer


if __name__ == "__main__":
    # Excludes imported objects from garbage collection.
    gc.freeze()
    uvloop.run(measure(sys.argv[1], int(sys.argv[2])))
