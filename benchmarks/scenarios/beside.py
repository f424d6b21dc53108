"""Throughput of plain jobs next to many that can't start: held by a limit, or of a task that no worker knows."""

from __future__ import annotations

import asyncio

from benchmarks.bench import Bench, twin
from benchmarks.draining import IN_TURNS, Drained, compared, drain_in_turns, warm_workers
from benchmarks.processes import scheduler, workers
from benchmarks.report import Result, Row, at_least

NAME = "beside"
TITLE = "plain jobs next to many that can't start, relative to empty tables"
LIMITED = '{"concurrency": {"key": "taken", "limit": 1}}'
HOLDER = """
insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, payload, options)
values (gen_random_uuid(), now(), now(), 0, 'ready', 'holders', 'nap', '{"seconds": 3600}', $1::jsonb)
"""
HELD = """
insert into foliot.runs (id, created_at, due_at, rank, state, held_by, queue, task, options)
select lpad(to_hex(n), 32, '0')::uuid, now(), now(), n, 'held', 'limit', 'default', 'noop', $2::jsonb
    from generate_series(1, $1::bigint) n
"""
UNKNOWN = """
insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
select lpad(to_hex(n), 32, '0')::uuid, now(), now(), n, 'ready', 'default', 'nobody' from generate_series(1,
    $1::bigint) n
"""
SETTLE_SECONDS = 20.0


async def measure(bench: Bench) -> Result:
    size = bench.size(100_000, full=100_000, tiny=1000)
    await bench.empty()
    async with twin(bench) as empty:
        async with scheduler(bench), scheduler(empty), workers(bench, 1, "holders=1", grace_seconds="1"):
            await bench.session.execute(HOLDER, LIMITED)
            while not await bench.session.fetchval("select exists (select from foliot.runs where state = 'running')"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            await bench.session.execute(HELD, size, LIMITED)
            await bench.settle()
            held = await _drained(bench, empty)
        await bench.empty()
        async with scheduler(bench), scheduler(empty):
            await bench.session.execute(UNKNOWN, size)
            async with warm_workers(bench):
                await _set_aside(bench)
            await bench.settle()
            unknown = await _drained(bench, empty)
    await bench.empty()
    rows = [
        Row(name, compared(found))
        for name, found in ((f"{size:,} held by a limit", held), (f"{size:,} of an unknown task", unknown))
    ]
    return Result(
        rows,
        [at_least(f"throughput next to {row.name}, relative to empty", row.figures["ratio"], 0.95) for row in rows],
        {"jobs": _jobs(bench), "pairs": len(held)},
        [IN_TURNS],
    )


async def _drained(bench: Bench, empty: Bench) -> list[tuple[Drained, Drained]]:
    """Uses several pairs of workers, because one of two identical processes may be faster for its whole life."""
    found: list[tuple[Drained, Drained]] = []
    jobs, times = _jobs(bench), bench.size(4, full=6, tiny=1)
    for _ in range(bench.size(4, full=6, tiny=1)):
        async with warm_workers(bench, empty) as pids:
            found += await drain_in_turns(
                bench, empty, pids, times=times, jobs=jobs, task="one", payload=lambda _: '{"item": 1}'
            )
    return found


def _jobs(bench: Bench) -> int:
    return bench.size(15_000, full=50_000, tiny=200)


async def _set_aside(bench: Bench) -> None:
    """Waits briefly for the gatekeeper to set the jobs aside. If it does not, the measurement includes that."""
    for _ in range(int(SETTLE_SECONDS / 0.2)):
        if not await bench.session.fetchval(
            "select exists (select from foliot.runs where task = 'nobody' and state = 'ready')"
        ):
            return
        await asyncio.sleep(0.2)
