"""Jobs are queued first; then warm workers are let at them and work until none is left.

The queue is paused while workers start, so that neither the start of Python nor that one worker comes up before the other is measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from benchmarks.bench import Bench, in_turns
from benchmarks.cpu import Meter
from benchmarks.processes import Variables, no_variables, workers
from benchmarks.raw_sql import PAYLOAD
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.hints import CHANNEL

BATCH = 1000
SLOTS = 1000
PAUSE = "insert into foliot.pauses (kind, name, paused_at) values ('queue', $1, clock_timestamp()) on conflict do nothing"
RESUME = "delete from foliot.pauses where kind = 'queue' and name = $1"
SPAN = """
select count(*), count(distinct id), extract(epoch from max(finished_at) - min(started_at))::float8
from foliot.history where task = $1 and state = 'succeeded' and queue = $2 and ($3::timestamptz is null or created_at >= $3)
"""


@dataclass(frozen=True, slots=True)
class Drained:
    per_second: float
    cpu: dict[str, float]
    """Microseconds a job: `postgres_us`, `worker_us`."""

    @property
    def all_us(self) -> float:
        return sum(self.cpu.values())


async def submit(bench: Bench, jobs: int, *, task: str, queue: str = "default", payload: Callable[[int], str] = lambda _: PAYLOAD) -> UUID:
    """The id of the last in line."""
    runs = [NewRun(id=new_id(), task=task, queue=queue, payload=payload(number)) for number in range(jobs)]
    for start in range(0, jobs, BATCH):
        await bench.store.runs.insert_runs(runs[start : start + BATCH])
    return runs[-1].id


async def drain(
    bench: Bench,
    jobs: int,
    *,
    task: str = "noop",
    processes: int = 1,
    slots: int = SLOTS,
    payload: Callable[[int], str] = lambda _: PAYLOAD,
    variables: Variables = no_variables,
    beside: Callable[[], Awaitable[None]] | None = None,
    **settings: str,
) -> Drained:
    """`beside`: something else is in the tables, and is given time to settle when the workers are warm. By default they are emptied."""
    if beside is None:
        await bench.empty()
    began = await bench.session.fetchval("select clock_timestamp()")
    await bench.session.execute(PAUSE, "default")
    last = await submit(bench, jobs, task=task, payload=payload)
    await bench.session.execute("vacuum analyze foliot.runs")
    async with workers(bench, processes, f"default={slots}", variables=variables, **settings) as pids:
        if beside is not None:
            await beside()
        meter = Meter({"postgres": [bench.postmaster], "worker": pids})
        meter.start()
        await resume(bench, "default")
        # The last in line is looked for by its key, which costs next to nothing; only when it is gone is the whole table looked at.
        await _gone(bench, "id = $1", last)
        meter.stop()
        await _gone(bench, "task = $1", task)
    done, distinct, seconds = await bench.session.fetchrow(SPAN, task, "default", began)
    if not done == distinct == jobs:
        raise RuntimeError(f"{done} runs of {task} succeeded, {distinct} distinct, of {jobs} jobs")
    return Drained(jobs / seconds, meter.microseconds(jobs))


async def drain_in_turns(full: Bench, empty: Bench, times: int, drained: Callable[[Bench], Awaitable[Drained]]) -> tuple[Drained, Drained]:
    """The same jobs beside something else and beside nothing, in two databases of one server."""
    found: dict[str, list[Drained]] = {full.url: [], empty.url: []}
    for bench in in_turns(full, empty, times):
        found[bench.url].append(await drained(bench))
        # What it has left to be cleaned up is not cleaned up while the other one is looked at.
        await bench.session.execute("vacuum foliot.runs")
    return mean(found[full.url]), mean(found[empty.url])


def compared(full: Drained, empty: Drained) -> dict[str, float]:
    """`cpu_ratio`: of the CPU time of a job, PostgreSQL's and the worker's."""
    return {
        "per_second": full.per_second,
        "empty_per_second": empty.per_second,
        "ratio": full.per_second / empty.per_second,
        "cpu_ratio": full.all_us / empty.all_us,
        **full.cpu,
    }


async def resume(bench: Bench, queue: str) -> None:
    await bench.session.execute(RESUME, queue)
    await bench.session.execute("select pg_notify($1, $2)", CHANNEL, queue)


def mean(found: Sequence[Drained]) -> Drained:
    cpu = {name: sum(one.cpu[name] for one in found) / len(found) for name in found[0].cpu}
    return Drained(sum(one.per_second for one in found) / len(found), cpu)


async def _gone(bench: Bench, which: str, value: object) -> None:
    while await bench.session.fetchval(f"select exists (select from foliot.runs where {which})", value):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
