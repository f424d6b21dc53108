"""Workers over HTTP: what they run, drains by label, and those that are gone with what they lost."""

from __future__ import annotations

from typing import Any

import httpx

from foliot.model.ids import new_id
from foliot.store.store import Store
from tests.support.runs import claim_runs, insert

QUEUES, TASKS = {"mail": 3}, ["send_invoice"]


async def test_a_worker_shows_what_is_in_its_slots(client: httpx.AsyncClient, store: Store) -> None:
    worker = new_id()
    run_id = await insert(store, name="<b>first</b>")
    await claim_runs(store, worker, QUEUES, TASKS)
    shown = (await client.get(f"/v1/workers/{worker}")).json()
    assert (shown["health"], shown["running"], shown["slots"], shown["gone"]) == ("healthy", 1, 3, None)
    assert [(run["id"], run["name"], run["queue"]) for run in shown["runs"]] == [(str(run_id), "<b>first</b>", "mail")]
    (listed,) = (await client.get("/v1/workers", params={"runs": "1"})).json()["items"]
    assert listed["runs"] == shown["runs"]
    assert (await client.get("/v1/workers")).json()["items"][0]["runs"] is None
    for missing in (new_id(), "nothing"):
        assert (await client.get(f"/v1/workers/{missing}")).status_code == 404


async def test_workers_are_drained_by_label(client: httpx.AsyncClient, store: Store) -> None:
    both = {"rack": "b7", "pool": "gpu"}
    for name, labels in (("one", both), ("two", both | {"pool": "cpu"}), ("three", {})):
        await store.workers.register_worker(new_id(), name, QUEUES, TASKS, labels)
    asked = {"labels": {"rack": "b7"}}
    tried = (await client.post("/v1/workers/drain", json=asked | {"dry_run": True})).json()
    assert ([one["name"] for one in tried["items"]], tried["is_dry_run"]) == (["one", "two"], True)
    assert {one["health"] for one in (await client.get("/v1/workers")).json()["items"]} == {"healthy"}
    drained = (await client.post("/v1/workers/drain", json={"labels": both})).json()
    assert [(one["name"], one["health"]) for one in drained["items"]] == [("one", "draining")]
    assert (await client.post("/v1/workers/drain", json={"labels": {"rack": "b8"}})).json()["items"] == []
    refused: list[dict[str, Any]] = [{}, {"labels": {}}, {"labels": {"rack": 7}}]
    for bad in refused:
        assert (await client.post("/v1/workers/drain", json=bad)).status_code == 422


async def test_workers_that_are_gone_say_how_and_what_they_lost(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    left, died = new_id(), new_id()
    await store.workers.register_worker(left, "left", QUEUES, TASKS)
    await store.workers.remove_worker(left)
    run_ids = {str(await insert(store)) for _ in range(2)}
    await claim_runs(store, died, QUEUES, TASKS)
    await sql.execute("update foliot.workers set expires_at = now() - interval '1 minute' where id = $1", died)
    # Whichever comes first: the run is lost, or the worker is removed.
    await store.lost_runs.lose_runs(1, 9)
    await store.workers.remove_dead_workers()
    await store.lost_runs.lose_runs(10, 9)
    gone = {one["id"]: one for one in (await client.get("/v1/workers/gone")).json()["items"]}
    assert (gone[str(left)]["is_dead"], gone[str(left)]["lost"], gone[str(left)]["queues"]) == (False, 0, QUEUES)
    assert (gone[str(died)]["is_dead"], gone[str(died)]["lost"], set(gone[str(died)]["lost_runs"])) == (
        True,
        2,
        run_ids,
    )
    assert gone[str(died)]["name"] == "claims by hand"
    shown = (await client.get(f"/v1/workers/{died}")).json()
    assert (shown["health"], shown["gone"]["lost"]) == ("gone", 2)
    await sql.execute("update foliot.gone_workers set gone_at = now() - interval '2 days' where id = $1", died)
    assert await store.gone_workers.forget_gone_workers() == 1
    assert (await client.get(f"/v1/workers/{died}")).status_code == 404
