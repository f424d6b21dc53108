"""A large installation, simulated: thousands of workers by the protocol over HTTP, a million schedules, and ticks and
jobs offered at rising rates, until some part can't keep up."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from time import perf_counter
from uuid import uuid4

import httpx

from benchmarks.bench import Bench
from benchmarks.cpu import Meter, Others
from benchmarks.processes import WorkerServer, scheduler, worker_server
from benchmarks.report import Result, Row
from benchmarks.schedules import EVERY_HOUR, EVERY_SECOND, TOMORROW, insert_jobs
from foliot.model.roles import Role
from foliot.model.tokens import new_token_text
from foliot.store.tokens import NewToken

NAME = "many_workers"
TITLE = "many workers over HTTP and many schedules: half of the load are ticks, half are submitted"
BATCH = 100
KEPT_UP, GROWTH = 0.9, 1.2
"""It ends when less than this share of what was offered has ended, and no more than at the rate before."""
PEAK = 10_000
BUSY_AT_MOST = 0.6
ENDED = "select count(*) from foliot.history"
READY = "select count(*) from foliot.runs where state = 'ready'"
Trees = Mapping[str, Sequence[int | None]]
PARTS = ("postgres", "api", "scheduler", "workers")


async def measure(bench: Bench) -> Result:
    number, schedules = (bench.size(usual, full=full, tiny=20) for usual, full in ((500, 10_000), (20_000, 1_000_000)))
    seconds = bench.size(10, full=20, tiny=2)
    rates = [20] if bench.is_tiny else [100, 200, 500, 1_000, 2_000, 5_000, PEAK]
    await insert_jobs(bench, "later", EVERY_HOUR, schedules, TOMORROW)
    await bench.session.execute("vacuum analyze foliot.jobs")
    await bench.store.workers.announce_tasks({"noop": "bench"})
    client_token = await _token(bench)
    async with (
        worker_server(bench, connections_max="30000") as api,
        scheduler(bench) as node,
        _speakers(api, number, processes=2) as speakers,
    ):
        trees: Trees = {"postgres": [bench.postmaster], "api": [api.pid], "scheduler": [node], "workers": speakers}
        # The workers have registered a moment ago.
        await asyncio.sleep(seconds / 2)
        idle = await _cores(trees, seconds)
        rows = [Row("nothing to do", idle)]
        async with httpx.AsyncClient(
            base_url=api.url, headers={"Authorization": f"Bearer {client_token}"}, timeout=60
        ) as client:
            ticking = 0
            for rate in rates:
                await insert_jobs(bench, f"tick-{rate}-", EVERY_SECOND, rate // 2 - ticking, 2.0)
                ticking = rate // 2
                rows.append(await _offer(bench, client, rate, seconds, trees))
                done, before = (_done(row) for row in (rows[-1], rows[-2]))
                if done < KEPT_UP * rate and done < GROWTH * before:
                    break
    return Result(
        rows,
        settings={"workers": number, "schedules": schedules, "seconds": seconds},
        notes=["microseconds are those of one job", *_larger(rows, number)],
    )


async def _offer(bench: Bench, client: httpx.AsyncClient, rate: int, seconds: float, trees: Trees) -> Row:
    # The first ticks, and what the step before has left.
    await asyncio.sleep(3)
    before, others = await bench.session.fetchval(ENDED), Others(bench.postmaster)
    meter = Meter(trees)
    meter.start()
    sent = await _submit(client, rate / 2, seconds)
    meter.stop()
    ended = await bench.session.fetchval(ENDED) - before
    cores = {f"{part}_cores": value for part, value in meter.cores().items()}
    figures = {
        "submitted_per_second": sent / meter.seconds,
        "ended_per_second": ended / meter.seconds,
        "ready_at_end": await bench.session.fetchval(READY),
        **cores,
        **meter.microseconds(max(ended, 1)),
        "cores_of_others": others.cores(),
    }
    return Row(f"{rate:,} a second offered", figures)


def _done(row: Row) -> float:
    return row.figures.get("ended_per_second") or 0.0


async def _submit(client: httpx.AsyncClient, rate: float, seconds: float) -> int:
    """Submits at this rate, as far as the answers allow."""
    began, sent, under_way = perf_counter(), 0, set[asyncio.Task[None]]()

    async def send(number: int) -> None:
        nonlocal sent
        answer = await client.post("/v1/jobs/batch", json={"jobs": [{"task": "noop", "queue": "bench"}] * number})
        if answer.is_success:
            sent += number

    asked = 0
    while (passed := perf_counter() - began) < seconds:
        owed = int(rate * passed) - asked
        number = min(BATCH, owed) if owed >= min(BATCH, rate / 10) else 0
        if number and len(under_way) < 16:
            asked += number
            task = asyncio.ensure_future(send(number))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        else:
            await asyncio.sleep(0.01)
    if under_way:
        await asyncio.wait(under_way)
    return sent


async def _cores(trees: Trees, seconds: float) -> dict[str, float]:
    meter = Meter(trees)
    meter.start()
    await asyncio.sleep(seconds)
    meter.stop()
    return {f"{part}_cores": value for part, value in meter.cores().items()}


@asynccontextmanager
async def _speakers(api: WorkerServer, number: int, *, processes: int) -> AsyncIterator[list[int | None]]:
    environment = os.environ | {"FOLIOT_TOKEN": api.token}
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.speakers", api.url, str(number // processes),
            stdin=PIPE, stdout=PIPE, env=environment,
        )
        for _ in range(processes)
    ]  # fmt: skip
    try:
        for one in started:
            assert one.stdout is not None
            if await one.stdout.readline() != b"ready\n":
                raise RuntimeError("the workers did not register")
        yield [one.pid for one in started]
    finally:
        for one in started:
            if one.returncode is None:
                one.kill()
            await one.wait()


async def _token(bench: Bench) -> str:
    text, token_id, digest = new_token_text()
    await bench.store.tokens.insert_token(
        NewToken(token_id, digest, f"bench {uuid4()}", Role.ADMIN, "default", "bench", None, None)
    )
    return text


def _larger(rows: list[Row], number: int) -> list[str]:
    """The cores of a machine without this one's limit, from the cost at the highest throughput."""
    idle, busy = rows[0].figures, max(rows, key=_done)
    found = []
    for part in PARTS:
        us, rest = busy.figures.get(f"{part}_us"), idle.get(f"{part}_cores") or 0.0
        if us is not None:
            found.append(f"{part} {PEAK * us / 1e6 / BUSY_AT_MOST + rest:.1f}")
    return [
        f"cores for {PEAK:,} jobs a second with {number:,} workers, {BUSY_AT_MOST:.0%} busy, by the cost at "
        f"{busy.name.removesuffix(' offered')}: {', '.join(found)}"
    ]
