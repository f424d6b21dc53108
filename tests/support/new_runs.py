"""New runs of the task `t` in the queue `default`, and claims of them."""

from __future__ import annotations

from typing import Any

from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = new_id()
QUEUES = {"default": 1000}


def run(**fields: Any) -> NewRun:
    given: dict[str, Any] = {"id": new_id(), "task": "t", "queue": "default"} | fields
    return NewRun(**given)


async def claim(store: Store, slots: int = 1000, *, queue: str = "default", worker_id: Any = WORKER) -> list[Any]:
    return await claim_runs(store, worker_id, {queue: slots}, ["t"])
