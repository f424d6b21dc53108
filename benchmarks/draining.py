"""Queues jobs first, and then measures how fast warm workers finish them.

The queue is paused until all workers are up, so that the start of Python and differences between workers are not
measured.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from uuid import UUID

from benchmarks.bench import Bench, in_turns
from benchmarks.cpu import Meter
from benchmarks.processes import Variables, no_variables, remote_workers, worker_server, workers
from benchmarks.raw_sql import PAYLOAD
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.hints import CHANNEL

BATCH = 1000
SLOTS = 1000
PAUSE = (
    "insert into foliot.pauses (kind, name, paused_at) values ('queue', $1, clock_timestamp()) on conflict do nothing"
)
RESUME = "delete from foliot.pauses where kind = 'queue' and name = $1"
IN_TURNS = (
    "`empty`: the same with empty tables, measured in turns; ratio: the mean of the middle pairs;"
    " cpu ratio: CPU time for each job, of PostgreSQL and the worker"
)
SPAN = """
select count(*), count(distinct id), extract(epoch from max(finished_at) - min(started_at))::float8
from foliot.history where task = $1 and state = 'succeeded' and queue = $2 and ($3::timestamptz is null
    or finished_at >= $3)
"""


@dataclass(frozen=True, slots=True)
class Queued:
    task: str
    jobs: int
    began: datetime
    """Before the first of them was submitted, by the database's clock."""
    last: UUID


@dataclass(frozen=True, slots=True)
class Drained:
    per_second: float
    cpu: dict[str, float]
    """Microseconds a job: `postgres_us`, `worker_us`."""

    @property
    def all_us(self) -> float:
        return sum(self.cpu.values())


async def submit(
    bench: Bench, jobs: int, *, task: str, queue: str = "default", payload: Callable[[int], str] = lambda _: PAYLOAD
) -> UUID:
    """Submits the jobs, and returns the id of the last one in the queue."""
    runs = [NewRun(id=new_id(), task=task, queue=queue, payload=payload(number)) for number in range(jobs)]
    for start in range(0, jobs, BATCH):
        await bench.store.run_inserts.insert_runs(runs[start : start + BATCH])
    return runs[-1].id


async def drain_remotely(bench: Bench, jobs: int, *, task: str = "noop") -> Drained:
    """The same with one worker that has no access to the database, through one API process."""
    await bench.empty()
    queued = await _queued(bench, jobs, task, lambda _: PAYLOAD)
    async with (
        worker_server(bench) as found,
        remote_workers(bench, 1, f"default={SLOTS}", server=found) as pids,
    ):
        return await _worked_off(bench, queued, [*pids, found.pid])


async def drain(
    bench: Bench,
    jobs: int,
    *,
    task: str = "noop",
    processes: int = 1,
    slots: int = SLOTS,
    payload: Callable[[int], str] = lambda _: PAYLOAD,
    variables: Variables = no_variables,
    **settings: str,
) -> Drained:
    """Drains a queue on empty tables, with workers of its own."""
    await bench.empty()
    queued = await _queued(bench, jobs, task, payload)
    async with workers(bench, processes, f"default={slots}", variables=variables, **settings) as pids:
        return await _worked_off(bench, queued, pids)


@asynccontextmanager
async def warm_workers(*benches: Bench) -> AsyncIterator[Mapping[str, Sequence[int]]]:
    """Starts a worker for each database, with its queue paused, and returns their process ids by URL."""
    async with AsyncExitStack() as started:
        pids = {}
        for bench in benches:
            await bench.session.execute(PAUSE, "default")
            pids[bench.url] = await started.enter_async_context(workers(bench, 1, f"default={SLOTS}"))
        yield pids


async def drain_in_turns(
    full: Bench,
    empty: Bench,
    pids: Mapping[str, Sequence[int]],
    *,
    times: int,
    jobs: int,
    task: str = "noop",
    payload: Callable[[int], str] = lambda _: PAYLOAD,
) -> list[tuple[Drained, Drained]]:
    """Drains the same jobs in both databases of one server in turns, with the workers of `warm_workers`."""
    found: dict[str, list[Drained]] = {full.url: [], empty.url: []}
    # One pair more than requested: the first one touches cold pages after a checkpoint, and is left out.
    for bench in in_turns(full, empty, times + 1):
        queued = await _queued(bench, jobs, task, payload)
        found[bench.url].append(await _worked_off(bench, queued, pids[bench.url]))
        # Cleans up now, so that the cleanup does not disturb the next measurement.
        await bench.session.execute("vacuum foliot.runs")
    return list(zip(found[full.url], found[empty.url], strict=True))[1:]


def compared(pairs: Sequence[tuple[Drained, Drained]]) -> dict[str, float]:
    """Compares by the pairs in the middle. Both halves of a pair are measured under nearly the same conditions, and few
    pairs are disturbed much. On a shared machine the same measurement differs by a tenth, so it takes many pairs.

    `cpu_ratio` compares the CPU time for each job, of PostgreSQL and the worker.
    """
    full, empty = mean([one for one, _ in pairs]), mean([other for _, other in pairs])
    return {
        "per_second": full.per_second,
        "empty_per_second": empty.per_second,
        "ratio": middle(one.per_second / other.per_second for one, other in pairs),
        "cpu_ratio": middle(one.all_us / other.all_us for one, other in pairs),
        **full.cpu,
    }


def middle(ratios: Iterable[float]) -> float:
    """The mean without the largest and the smallest quarter."""
    ordered = sorted(ratios)
    spared = len(ordered) // 4
    return fmean(ordered[spared : len(ordered) - spared])


async def _queued(bench: Bench, jobs: int, task: str, payload: Callable[[int], str]) -> Queued:
    """Queues jobs while the queue is paused."""
    await bench.session.execute(PAUSE, "default")
    began = await bench.session.fetchval("select clock_timestamp()")
    last = await submit(bench, jobs, task=task, payload=payload)
    await bench.session.execute("vacuum analyze foliot.runs")
    return Queued(task, jobs, began, last)


async def _worked_off(bench: Bench, queued: Queued, pids: Sequence[int]) -> Drained:
    """Lets warm workers drain the queue, and pauses it again afterwards so that other jobs stay in it."""
    meter = Meter({"postgres": [bench.postmaster], "worker": pids})
    meter.start()
    await resume(bench, "default")
    # Polling for the last job by its key costs next to nothing. The whole table is checked only once that job is gone.
    await _gone(bench, "id = $1", queued.last)
    meter.stop()
    await _gone(bench, "task = $1", queued.task)
    await bench.session.execute(PAUSE, "default")
    done, distinct, seconds = await bench.session.fetchrow(SPAN, queued.task, "default", queued.began)
    if not done == distinct == queued.jobs:
        raise RuntimeError(f"{done} runs of {queued.task} succeeded, {distinct} distinct, of {queued.jobs} jobs")
    return Drained(queued.jobs / seconds, meter.microseconds(queued.jobs))


async def resume(bench: Bench, queue: str) -> None:
    await bench.session.execute(RESUME, queue)
    await bench.session.execute("select pg_notify($1, $2)", CHANNEL, queue)


def mean(found: Sequence[Drained]) -> Drained:
    cpu = {name: sum(one.cpu[name] for one in found) / len(found) for name in found[0].cpu}
    return Drained(sum(one.per_second for one in found) / len(found), cpu)


async def _gone(bench: Bench, which: str, value: object) -> None:
    while await bench.session.fetchval(f"select exists (select from foliot.runs where {which})", value):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
