"""`GET /v1/scaling`, in the form that KEDA's metrics-api scaler reads."""

from __future__ import annotations

from typing import Any

import httpx

from foliot.model.ids import new_id
from foliot.store.store import Store
from tests.support.runs import claim, insert


async def test_a_queue_with_a_late_run_wants_more_slots(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    worker = new_id()
    await store.workers.register_worker(worker, "a:1", {"mail": 2, "default": 9}, [])
    for _ in range(5):
        await insert(store, queue="mail")
    await claim(store, queue="mail", count=2, worker=worker)
    body = (await client.get("/v1/scaling", params={"queue": "mail"})).json()
    assert body["slots_wanted"] == 3
    await sql.execute("update foliot.runs set due_at = due_at - interval '11 s' where state = 'ready'")
    body = (await client.get("/v1/scaling", params={"queue": "mail"})).json()
    assert body["slots_wanted"] == 4
    shown = body["queues"].pop("mail")
    assert body["queues"] == {}
    assert 11 <= shown.pop("lag_seconds") < 60
    assert shown == {"slots_wanted": 4, "slots": 2, "running": 2, "waiting": 3}


async def test_the_number_is_there_before_the_queue_is(client: httpx.AsyncClient) -> None:
    body = (await client.get("/v1/scaling", params={"queue": "new, other"})).json()
    assert body["slots_wanted"] == 0
    assert list(body["queues"]) == ["new", "other"]


async def test_without_a_name_all_queues_of_the_namespace_are_listed(client: httpx.AsyncClient, store: Store) -> None:
    await insert(store, queue="mail")
    await insert(store, queue="team/secret")
    body = (await client.get("/v1/scaling")).json()
    assert (body["slots_wanted"], list(body["queues"])) == (1, ["default", "mail"])


async def test_a_name_that_no_queue_can_have_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.get("/v1/scaling", params={"queue": "a b"})
    assert answer.status_code == 422
