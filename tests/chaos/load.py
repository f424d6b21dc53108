"""Clients that submit, cancel, pause and edit all the time, and record the answers outside the database.

The rate is that of jobs which were accepted, over the whole run: what could not be submitted while the servers, or
PostgreSQL, were away is submitted afterwards, as clients do who kept it.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import httpx

from tests.chaos.checker.history import Request, Workflow, WorkflowStep
from tests.chaos.recorder import Journal, monotonic_us
from tests.support.workflow_oracle import Given

TURN_SECONDS = 0.1
CATCH_UP = 4
"""The largest multiple of a batch's usual size while the load catches up."""
AT_ONCE = 96
"""Concurrent requests; while the servers are down, clients send nothing more."""
PATIENCE_SECONDS = 5.0
INSIST_SECONDS = 120.0
RECURRING = 30
RULES = ("all_success", "all_success", "all_success", "all_done", "one_failed", "one_success", "none_failed")
Kind = Literal["job", "keyed", "workflow", "recurring", "cancel", "pause", "resume", "edit"]


class Load:
    def __init__(self, servers: Sequence[str], journal: Journal, *, seed: int, rate: float) -> None:
        self._servers = list(servers)
        self._journal = journal
        self._chance = random.Random(seed)
        self._rate = rate
        self._names = 0
        self._room = asyncio.Semaphore(AT_ONCE)
        self._began = 0
        """On the monotonic clock, in microseconds."""
        self._on_their_way = 0
        """Jobs that were sent and not yet answered."""
        self._accepted = 0
        self._cancellable: deque[str] = deque(maxlen=50)
        self._recurring: list[str] = []
        self._asking: set[asyncio.Task[None]] = set()
        self._wrong: list[BaseException] = []
        """An answer that no client expects: an error in this file."""
        self._client: httpx.AsyncClient
        self.acknowledged = 0
        self.unanswered = 0
        self.refused = 0

    async def run(self, is_over: asyncio.Event) -> None:
        """Runs until the end, and until every request has been answered or given up."""
        limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS, limits=limits) as self._client:
            await asyncio.gather(*(self._make_recurring(number) for number in range(RECURRING)))
            await self._make_dependents()
            self._began = monotonic_us()
            pausing = asyncio.create_task(self._pause_now_and_then(is_over), name="pause")
            while not is_over.is_set():
                await self._turn()
                with suppress(TimeoutError):
                    async with asyncio.timeout(TURN_SECONDS):
                        await is_over.wait()
            await pausing
            if self._asking:
                await asyncio.wait(self._asking)
        if self._wrong:
            raise self._wrong[0]

    async def _turn(self) -> None:
        """The load of a tenth of a second: most of it in one batch, the rest one by one."""
        usual = max(1, round(self._rate * TURN_SECONDS))
        alone = max(1, usual // 5)
        owed = round(self._rate * (monotonic_us() - self._began) / 1e6) - self._accepted - self._on_their_way
        number = min(max(1, owed - alone), CATCH_UP * usual)
        await self._begin(lambda: self._batch(number), jobs=number)
        kinds = (self._single, self._single, self._keyed, self._limited, self._delayed, self._durable, self._long)
        for _ in range(alone):
            await self._begin(self._chance.choice(kinds), jobs=1)
        if self._chance.random() < 0.2:
            await self._begin(self._chance.choice((self._cancel, self._edit)))
        if self._chance.random() < 0.1:
            await self._begin(self._workflow)
        if self._chance.random() < 0.1:
            await self._begin(self._chain)

    async def _begin(self, ask: Callable[[], Awaitable[None]], *, jobs: int = 0) -> None:
        await self._room.acquire()
        self._on_their_way += jobs

        async def asking() -> None:
            try:
                await ask()
            finally:
                self._on_their_way -= jobs
                self._room.release()

        task = asyncio.create_task(asking(), name="ask")
        self._asking.add(task)
        task.add_done_callback(self._asked)

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking.discard(task)
        if error := task.exception():
            self._wrong.append(error)

    async def _ask(
        self, kind: Kind, method: str, path: str, body: Any, *, key: str = "", about: Sequence[str] = ()
    ) -> tuple[int, Any]:
        """Sends one request and records it. Returns the answer's status, 0 for none, and its body."""
        sent_at, status, ids, was_created = monotonic_us(), 0, list(about), True
        answer: Any = None
        headers = {"Idempotency-Key": key} if key and kind not in ("pause", "resume") else {}
        try:
            response = await self._client.request(
                method, self._chance.choice(self._servers) + path, json=body, headers=headers
            )
            status, answer = response.status_code, response.json()
        except (httpx.HTTPError, ValueError):
            status = 0
        if 200 <= status < 300:
            self.acknowledged += 1
            if kind in ("job", "keyed", "workflow", "recurring"):
                ids = [made["id"] for made in answer.get("items", [answer])]
                self._accepted += len(ids)
                was_created = bool(answer.get("created", True))
        elif status:
            self.refused += 1
        else:
            self.unanswered += 1
        self._journal.write("journal", Request(kind, sent_at, monotonic_us(), status, ids, key, was_created))
        return status, answer

    async def _insist(
        self, kind: Kind, method: str, path: str, body: Any, *, key: str, about: Sequence[str] = ()
    ) -> tuple[int, Any]:
        """Repeats a request until an answer accepts or refuses it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INSIST_SECONDS):
                while True:
                    status, answer = await self._ask(kind, method, path, body, key=key, about=about)
                    if status and status < 500 and status not in (408, 425, 429):
                        return status, answer
                    await asyncio.sleep(0.3)
        return 0, None

    def _named(self, word: str) -> str:
        self._names += 1
        return f"{word}-{self._names}"

    def _job(self, **fields: Any) -> dict[str, Any]:
        chance = self._chance
        payload = {"seconds": chance.choice((0, 0, 0, 0, 0.01, 0.05))}
        if chance.random() < 0.03:
            payload["fails"] = 1
        task = chance.choices(("effect", "once", "quick", "blocking", "pay"), (30, 8, 8, 2, 1))[0]
        if task == "quick":
            return {"task": task, "payload": {"mark": self._named("mark")}, **fields}
        return {"task": task, "payload": payload if task == "effect" else {"seconds": payload["seconds"]}, **fields}

    async def _batch(self, number: int) -> None:
        await self._ask("job", "POST", "/v1/jobs/batch", {"jobs": [self._job() for _ in range(number)]})

    async def _single(self) -> None:
        fields = self._chance.choices(({}, {"queue": "pausable"}, {"priority": 1}), (8, 1, 1))[0]
        await self._ask("job", "POST", "/v1/jobs", self._job(**fields))

    async def _keyed(self) -> None:
        await self._insist("keyed", "POST", "/v1/jobs", self._job(), key=self._named("key"))

    async def _limited(self) -> None:
        key = f"limit-{self._chance.randrange(4)}"
        body = {"task": "effect", "payload": {"seconds": 0.02}, "concurrency": {"key": key, "limit": 3}}
        await self._ask("job", "POST", "/v1/jobs", body)

    async def _durable(self) -> None:
        await self._ask("job", "POST", "/v1/jobs", {"task": "durable"})

    async def _delayed(self) -> None:
        status, answer = await self._ask(
            "job", "POST", "/v1/jobs", self._job(delay_seconds=self._chance.choice((0.5, 2, 5)))
        )
        if status == 201:
            self._cancellable.append(answer["id"])

    async def _long(self) -> None:
        # The longest job outlives the lease of a worker that cannot renew it and does not stop its jobs. The nap is
        # still running elsewhere when a worker wakes that slept through its lease, and has ended its own.
        kinds: tuple[dict[str, Any], ...] = (
            {"task": "endless"},
            {"task": "nap", "payload": {"seconds": 10}},
            *({"task": "effect", "payload": {"seconds": seconds}} for seconds in (0.5, 1, 3, 20)),
        )
        body = self._chance.choice(kinds)
        status, answer = await self._ask("job", "POST", "/v1/jobs", body)
        if status == 201:
            self._cancellable.append(answer["id"])

    async def _cancel(self) -> None:
        if self._cancellable:
            run_id = self._cancellable.pop()
            await self._ask("cancel", "POST", f"/v1/runs/{run_id}/cancel", {}, about=[run_id])

    async def _workflow(self) -> None:
        steps = draw_steps(self._chance)
        body = {"steps": [_step(step) for step in steps], "on_failure": "continue"}
        status, answer = await self._ask("workflow", "POST", "/v1/workflows", body)
        if status == 201:
            given = [WorkflowStep(step.key, list(step.after), step.rule, step.outcome) for step in steps]
            self._journal.write("workflows", Workflow(answer["id"], given))

    async def _make_recurring(self, number: int) -> None:
        overlap = ("allow_all", "allow_all", "skip", "buffer_one")[number % 4]
        body = {
            "name": f"job-{number}",
            "task": "effect",
            "every": f"{1 + number % 5}s",
            "overlap": overlap,
            "catchup": "all",
            "catchup_max": 10_000,
            "payload": {"seconds": 0},
        }
        status, answer = await self._insist("recurring", "POST", "/v1/jobs", body, key=f"recurring-{number}")
        if status in (200, 201):
            self._recurring.append(answer["id"])

    async def _make_dependents(self) -> None:
        """Recurring jobs that depend on others: some have a schedule of their own, some are fired by success. They are
        never edited; the jobs before them may be."""
        often = {"task": "effect", "overlap": "allow_all", "catchup": "all", "catchup_max": 10_000}
        failing = {**often, "every": "2s", "payload": {"fails": 1}, "retries": 0}
        jobs = [("failing", failing)]
        for number, dependencies in enumerate((["job-0"], ["failing"], ["job-0", "failing"], ["job-1", "job-4"])):
            jobs.append((f"following-{number}", {**often, "every": "2s", "dependencies": dependencies}))
            jobs.append((f"fired-{number}", {"task": "effect", "overlap": "allow_all", "dependencies": dependencies}))
        jobs.append(("last", {"task": "effect", "overlap": "allow_all", "dependencies": ["fired-0"]}))
        for name, body in jobs:
            await self._insist("recurring", "POST", "/v1/jobs", {"name": name, **body}, key=f"recurring-{name}")

    async def _chain(self) -> None:
        """One-off jobs that wait for one to three others, one of which may fail, and one that waits for the first."""
        chance = self._chance
        before: list[dict[str, Any]] = [
            {"task": "effect", "payload": {"seconds": chance.choice((0, 0.05, 1))}, "retries": 0}
            for _ in range(chance.randint(1, 3))
        ]
        if chance.random() < 0.2:
            before[0]["payload"] = {"fails_for_good": True}
        status, answer = await self._ask("job", "POST", "/v1/jobs/batch", {"jobs": before})
        ids = [made["id"] for made in answer["items"]] if 200 <= status < 300 else []
        while ids and len(ids) < len(before) + 2:
            status, answer = await self._ask("job", "POST", "/v1/jobs", {"task": "effect", "dependencies": ids})
            if status != 201:
                break
            ids.append(answer["id"])

    async def _edit(self) -> None:
        if self._recurring:
            job_id = self._chance.choice(self._recurring)
            await self._ask(
                "edit", "PATCH", f"/v1/jobs/{job_id}", {"every": f"{self._chance.randint(1, 5)}s"}, about=[job_id]
            )

    async def _pause_now_and_then(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(15):
                    await is_over.wait()
                    return
            await self._ask("pause", "POST", "/v1/queues/pausable/pause", {}, key="pausable")
            await asyncio.sleep(4)
            await self._insist("resume", "POST", "/v1/queues/pausable/resume", {}, key="pausable")


def draw_steps(chance: random.Random) -> list[Given]:
    """A small workflow whose outcome is known in advance."""
    steps: list[Given] = []
    for place in range(chance.randint(2, 7)):
        before = chance.sample([step.key for step in steps], k=min(len(steps), chance.choice((0, 1, 1, 2, 3))))
        outcome = "failed" if chance.random() < 0.15 else "succeeded"
        steps.append(
            Given(f"s{place}", tuple(sorted(before)), chance.choice(RULES) if before else "all_success", outcome)
        )
    return steps


def _step(step: Given) -> dict[str, Any]:
    payload = {"fails_for_good": True} if step.outcome == "failed" else {}
    return {
        "key": step.key,
        "task": "effect",
        "payload": payload,
        "after": list(step.after),
        "rule": step.rule,
        "queue": "steps",
    }
