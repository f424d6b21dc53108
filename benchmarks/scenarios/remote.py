"""Workers without database access: what one API process drains beside a direct worker, and the cost of idle ones."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import httpx

from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.draining import SLOTS, drain, drain_remotely, mean
from benchmarks.processes import WORKERS, WorkerServer, until, worker_server, workers
from benchmarks.report import Result, Row, at_least, at_most
from foliot.service import own_task

NAME = "remote"
TITLE = "workers without database access, through one API process"
DIRECT = 10
BEAT_SECONDS = 5.0
POSTGRES = "postgres_%_of_a_core"


async def measure(bench: Bench) -> Result:
    jobs = bench.size(40_000, full=100_000, tiny=200)
    # In an order that favours neither if the machine becomes slower or faster in the meantime.
    first = await drain(bench, jobs)
    remote = mean([await drain_remotely(bench, jobs), await drain_remotely(bench, jobs)])
    direct = mean([first, await drain(bench, jobs)])
    number, seconds = bench.size(1000, full=1000, tiny=20), bench.size(20, full=60, tiny=1)
    await bench.empty()
    async with workers(bench, DIRECT if not bench.is_tiny else 2):
        few = await _spent(bench, seconds)
    async with worker_server(bench) as server, _speakers(bench, server, number):
        many = await _spent(bench, seconds)
    return Result(
        [
            Row("direct, 1 worker", {"per_second": direct.per_second, **direct.cpu}),
            Row("remote, 1 worker and 1 API process", {"per_second": remote.per_second, **remote.cpu}),
            Row(f"{DIRECT} idle direct workers", {POSTGRES: few}),
            Row(f"{number} idle remote workers", {POSTGRES: many}),
        ],
        [
            at_least("remote: share of the direct worker", remote.per_second / direct.per_second, 0.5),
            at_most(f"PostgreSQL's CPU with {number} idle remote workers by that with {DIRECT} direct", many / few, 1),
        ],
        {"jobs": jobs, "slots": SLOTS, "idle": number, "seconds": seconds},
    )


async def _spent(bench: Bench, seconds: float) -> float:
    # Leaves out the work of starting up.
    await asyncio.sleep(seconds / 2)
    meter = Meter({"postgres": [bench.postmaster]})
    meter.start()
    await asyncio.sleep(seconds)
    meter.stop()
    return 100 * meter.cores()["postgres"]


class _speakers:  # noqa: N801 - it is used as a function
    """Idle workers that are nothing but their requests."""

    def __init__(self, bench: Bench, server: WorkerServer, number: int) -> None:
        self._bench, self._server, self._number = bench, server, number
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> None:
        others = await self._bench.session.fetchval(WORKERS)
        self._client = httpx.AsyncClient(
            base_url=self._server.url,
            headers={"Authorization": f"Bearer {self._server.token}"},
            limits=httpx.Limits(max_connections=None),
            timeout=60,
        )
        self._tasks = [own_task(self._speak()) for _ in range(self._number)]
        await until(self._bench, WORKERS, others + self._number)

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._client.aclose()

    async def _speak(self) -> None:
        worker_id = str(uuid4())
        await self._post("register", worker_id, name=worker_id, queues={"default": 1}, tasks={"noop": {}})
        await asyncio.gather(self._wait(worker_id), self._beat(worker_id))

    async def _wait(self, worker_id: str) -> None:
        while True:
            work = {"slots": {"default": 1}, "tasks": ["noop"]}
            if (await self._post("wait", worker_id, **work))["claim"]:
                await self._post("claim", worker_id, **work, is_idle=True)

    async def _beat(self, worker_id: str) -> None:
        while True:
            await self._post("beat", worker_id, held=[], is_idle=True)
            await asyncio.sleep(BEAT_SECONDS)

    async def _post(self, path: str, worker_id: str, **fields: object) -> dict[str, object]:
        answer = await self._client.post(f"/v1/worker/{path}", json={"worker_id": worker_id, **fields})
        answer.raise_for_status()
        found: dict[str, object] = answer.json()
        return found
