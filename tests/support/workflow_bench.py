"""A worker whose steps follow a test's orders, the API in front of it, and the services of a scheduler node."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

import foliot
from foliot.scheduler.conditions import decide_conditions
from foliot.store.store import Store
from tests.support.runs import find_stuck
from tests.support.waiting import until
from tests.support.workers import worker_node

TERMINAL = {"succeeded", "failed", "cancelled", "skipped"}
Answer = dict[str, Any]


class WorkflowBench:
    """The task `act` of a step says its name: what is in `failing` fails, what is in `holding` runs until it is taken
    out."""

    def __init__(self, store: Store, client: httpx.AsyncClient) -> None:
        self.store = store
        self.client = client
        self.failing: set[str] = set()
        self.holding: set[str] = set()
        self.ran: Counter[str] = Counter()
        self.saw: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self.app = foliot.App()

        @self.app.task(retries=0)
        async def act(ctx: foliot.Context, name: str = "", item: Any = None, value: Any = None) -> Any:
            known = name if item is None else f"{name}{item}"
            self.ran[known] += 1
            self.saw[known] = {"upstream": dict(ctx.upstream), "signal": ctx.signal, "value": value}
            while known in self.holding:
                await asyncio.sleep(0.01)
            if known in self.failing:
                raise ValueError(f"{known} was told to fail")
            return self.results.get(known, known)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[WorkflowBench]:
        async with worker_node(self.store, self.app):
            tending = asyncio.create_task(self._tend(), name="tend")
            try:
                yield self
                assert await find_stuck(self.store) == []
            finally:
                self.holding.clear()
                tending.cancel()
                with suppress(asyncio.CancelledError):
                    await tending

    async def _tend(self) -> None:
        while True:
            self.store.hints.send(await self.store.due_runs.promote_due_runs(1000))
            await self.store.cancellation.end_cancelled()
            await decide_conditions(self.store)
            self.store.hints.send(await self.store.signals.time_out_signals(1000))
            await asyncio.sleep(0.05)

    async def create(self, *steps: Answer, **fields: Any) -> str:
        answer = await self.client.post("/v1/workflows", json={"steps": list(steps), **fields})
        assert answer.status_code == 201, answer.text
        found: str = answer.json()["id"]
        return found

    async def post(self, path: str, status: int = 200, **fields: Any) -> Answer:
        answer = await self.client.post(path, json=fields)
        assert answer.status_code == status, answer.text
        found: Answer = answer.json()
        return found

    async def get(self, workflow_id: str) -> Answer:
        answer = await self.client.get(f"/v1/workflows/{workflow_id}")
        assert answer.status_code == 200, answer.text
        found: Answer = answer.json()
        return found

    async def ended(self, workflow_id: str) -> Answer:
        async def look() -> Answer | None:
            shown = await self.get(workflow_id)
            return shown if shown["state"] in TERMINAL else None

        found = await until(look)
        assert found is not None
        return found

    async def is_under_way(self, *names: str) -> None:
        async def look() -> bool:
            return all(self.ran[name] for name in names)

        await until(look)

    async def step_is(self, workflow_id: str, key: str, state: str) -> Answer:
        async def look() -> Answer | None:
            found = steps_of(await self.get(workflow_id))[key]
            return found if found["state"] == state else None

        found = await until(look)
        assert found is not None
        return found


def act(key: str, *after: str, **fields: Any) -> Answer:
    payload = {"name": key} | fields.pop("payload", {})
    return {"key": key, "task": "act", "payload": payload, "after": list(after), **fields}


def steps_of(shown: Answer) -> dict[str, Answer]:
    return {step["key"]: step for step in shown["steps"]}


def states_of(shown: Answer) -> dict[str, str]:
    return {step["key"]: step["state"] for step in shown["steps"]}
