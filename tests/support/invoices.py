"""Jobs of the task `send_invoice`: submitted over HTTP, and claimed."""

from __future__ import annotations

from typing import Any

import httpx

from foliot.model.ids import new_id
from foliot.store.store import Store
from tests.support.runs import claim_runs


async def submit(client: httpx.AsyncClient, **fields: Any) -> httpx.Response:
    return await client.post("/v1/jobs", json={"task": "send_invoice", **fields})


async def claimed(store: Store) -> int:
    return len(await claim_runs(store, new_id(), {"mail": 10}, ["send_invoice"]))
