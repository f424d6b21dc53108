"""Memory of each kind of process, idle, and of a worker after many jobs: does it grow?"""

from __future__ import annotations

import asyncio

import psutil

from benchmarks.bench import Bench
from benchmarks.draining import SLOTS, submit
from benchmarks.processes import scheduler, server, workers
from benchmarks.report import Result, Row

NAME = "memory"
TITLE = "memory of a process with shared pages (rss) and without (uss); size of a job on disk"
SETTLE_SECONDS = 3.0
HISTORY_SIZE = (
    "select sum(pg_total_relation_size(inhrelid))::float8 from pg_inherits where inhparent = 'foliot.history'::regclass"
)
WAL_SINCE = "select pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::float8"


async def measure(bench: Bench) -> Result:
    jobs = bench.size(40_000, full=100_000, tiny=500)
    rows = []
    async with scheduler(bench) as node, server(bench) as api, workers(bench, 1, f"default={SLOTS}") as pids:
        await asyncio.sleep(SETTLE_SECONDS)
        rows += [_row("scheduler, idle", node), _row("server, idle", api), _row("worker, idle", pids[0])]
        begin = await bench.session.fetchval("select pg_current_wal_lsn()::text")
        for half in (1, 2):
            await submit(bench, jobs // 2, task="noop")
            bench.store.hints.send(["default"])
            while await bench.session.fetchval("select exists (select from foliot.runs)"):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            rows.append(_row(f"worker, after {jobs // 2 * half:,} jobs", pids[0]))
        wal = await bench.session.fetchval(WAL_SINCE, begin) / (jobs // 2 * 2)
    kept = await bench.session.fetchval(HISTORY_SIZE) / (jobs // 2 * 2)
    rows.append(Row("a job on disk", {"history_bytes": kept, "wal_bytes": wal}))
    return Result(
        rows,
        settings={"slots": SLOTS},
        notes=["wal: what a job's whole life writes to the log, from submitted to history"],
    )


def _row(name: str, pid: int) -> Row:
    process = psutil.Process(pid)
    tree = [process, *process.children(recursive=True)]
    used = [one.memory_full_info() for one in tree]
    figures = {"rss_mb": sum(one.rss for one in used) / 1e6, "uss_mb": sum(one.uss for one in used) / 1e6}
    return Row(name, {**figures, "processes": len(tree)})
