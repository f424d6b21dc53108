"""`explain` names what blocks a run, and a claim takes every run that it reports as free."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

from foliot.model.circuit_breaker import Circuit
from foliot.model.ids import new_id
from foliot.store.store import Store
from tests.support.runs import claim_runs

WORKER = new_id()


async def explained(client: httpx.AsyncClient, reference: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/explain/{reference}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def closed(client: httpx.AsyncClient, reference: str) -> dict[str, dict[str, Any]]:
    return {gate["gate"]: gate for gate in (await explained(client, reference))["gates"] if not gate["is_open"]}


async def submit(client: httpx.AsyncClient, **fields: Any) -> str:
    answer = await client.post("/v1/jobs", json={"task": "simulate", **fields})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


@pytest.fixture
async def worker(store: Store) -> None:
    await store.workers.register_worker(WORKER, "the worker", {"default": 2}, ["simulate", "shell"], {})


async def claim(store: Store, slots: int = 2) -> list[str]:
    return [
        str(claimed.run_id) for claimed in await claim_runs(store, WORKER, {"default": slots}, ["simulate", "shell"])
    ]


async def test_a_run_that_can_start_is_reported_as_open(client: httpx.AsyncClient, store: Store, worker: None) -> None:
    run = await submit(client)
    found = await explained(client, run)
    assert found["summary"].startswith("it may start at any moment")
    assert await claim(store) == [run]
    assert "runs on the worker" in (await explained(client, run))["gates"][0]["detail"]


async def test_a_missing_worker_for_queue_or_task_is_reported(client: httpx.AsyncClient, store: Store) -> None:
    run = await submit(client)
    assert "no live worker serves the queue 'default'" in (await explained(client, run))["summary"]
    await store.workers.register_worker(WORKER, "other", {"default": 1}, ["shell"], {})
    assert "knows the task 'simulate'" in (await explained(client, run))["summary"]


async def test_a_later_due_time_is_reported(client: httpx.AsyncClient, worker: None) -> None:
    run = await submit(client, delay_seconds=3600)
    gate = (await closed(client, run))["due"]
    assert "not due until" in gate["detail"]
    assert 3590 < gate["numbers"]["seconds"] <= 3600


async def test_a_pause_is_reported_with_its_reason_and_a_circuit_with_its_count(
    client: httpx.AsyncClient, store: Store, worker: None
) -> None:
    run = await submit(client)
    assert (await client.post("/v1/queues/default/pause", json={"reason": "deploy"})).status_code == 200
    assert "queue 'default' has been paused since" in (await explained(client, run))["summary"]
    assert (await closed(client, run))["pause"]["numbers"]["reason"] == "deploy"
    assert (await client.post("/v1/queues/default/resume")).status_code == 200
    await store.circuit_breaker.record_failures({"simulate": 5}, {"simulate": Circuit(failures=5, seconds=600)})
    assert "after 5 failures in a row" in (await explained(client, run))["summary"]


async def test_a_limit_is_reported_with_the_runs_that_use_it_up(
    client: httpx.AsyncClient, store: Store, worker: None
) -> None:
    fields = {"concurrency": {"key": "tenant", "limit": 1}}
    first, second = await submit(client, **fields), await submit(client, **fields)
    await store.limits.admit_runs()
    gate = (await closed(client, second))["concurrency"]
    assert "key 'tenant': 1 of 1 places are taken" in gate["detail"]
    assert gate["numbers"]["held_by"] == [first]


async def test_earlier_runs_and_busy_slots_are_reported(client: httpx.AsyncClient, store: Store, worker: None) -> None:
    runs = [await submit(client) for _ in range(4)]
    assert (await closed(client, runs[3]))["line"]["detail"] == "3 runs are ahead of it in its queue"
    assert await claim(store) == runs[:2]
    assert "all 2 slots of 1 workers are busy" in (await explained(client, runs[3]))["summary"]


async def test_dependencies_and_signals_are_reported_by_name(
    client: httpx.AsyncClient, store: Store, worker: None
) -> None:
    await store.workers.announce_tasks({"wait": "default"})
    steps = [
        {"key": "first", "task": "simulate"},
        {"key": "second", "task": "simulate", "after": ["first"]},
        {"key": "approve", "signal": {"timeout_seconds": 60}},
    ]
    workflow = (await client.post("/v1/workflows", json={"steps": steps})).json()
    found = await explained(client, workflow["steps"]["second"])
    assert "waits for 1 upstream run, with the rule all_success: first (ready)" in found["summary"]
    assert "waits for a signal until" in (await explained(client, workflow["steps"]["approve"]))["summary"]
    whole = await explained(client, workflow["id"])
    assert whole["kind"] == "workflow"
    assert "first (ready)" in whole["summary"]


async def test_jobs_and_queues_are_explained(client: httpx.AsyncClient, worker: None) -> None:
    await client.post("/v1/jobs", json={"task": "simulate", "name": "nightly", "cron": "0 3 * * *"})
    assert "is next due at" in (await explained(client, "nightly"))["summary"]
    await client.post("/v1/jobs/nightly/pause", json={"reason": "holiday"})
    assert "because holiday" in (await explained(client, "nightly"))["summary"]
    assert (await explained(client, "default"))["kind"] == "queue"
    for unknown in ("nothing", str(new_id()), "%00"):
        assert (await client.get(f"/v1/explain/{unknown}")).status_code == 404


async def test_an_ended_run_is_explained_by_its_end(client: httpx.AsyncClient, worker: None) -> None:
    run = await submit(client, delay_seconds=60)
    await client.post(f"/v1/runs/{run}/cancel", json={"reason": "no need"})
    assert (await explained(client, run))["summary"] == "has ended: cancelled: cancelled (no need)"


@pytest.mark.parametrize("seed", range(6))
async def test_a_run_without_closed_gates_is_claimed(client: httpx.AsyncClient, store: Store, seed: int) -> None:
    chance = random.Random(seed)
    await store.workers.register_worker(WORKER, "the worker", {"default": 100}, ["simulate", "shell"], {})
    runs = []
    for number in range(20):
        fields: dict[str, Any] = {"task": chance.choice(["simulate", "shell"])}
        if chance.random() < 0.2:
            fields["delay_seconds"] = 600
        if chance.random() < 0.3:
            fields["concurrency"] = {"key": chance.choice("ab"), "limit": 2}
        if chance.random() < 0.1:
            fields["signal"] = {} if "delay_seconds" not in fields else None
        if fields["task"] == "shell":
            fields["payload"] = {"command": f"echo {number}"}
        runs.append(await submit(client, **fields))
    await store.limits.admit_runs()
    if chance.random() < 0.4:
        await client.post("/v1/tasks/shell/pause", json={})
    if chance.random() < 0.3:
        await store.circuit_breaker.record_failures({"simulate": 5}, {"simulate": Circuit(failures=5, seconds=600)})
    # A place behind others does not block a run when there are slots for all.
    free = [run for run in runs if not (await closed(client, run)).keys() - {"line"}]
    assert sorted(await claim(store, 100)) == sorted(free)


async def test_a_missing_scheduler_node_is_reported(client: httpx.AsyncClient, sql: Any) -> None:
    made = await client.post("/v1/jobs", json={"name": "late", "task": "simulate", "every": "1h"})
    assert made.status_code == 201, made.text
    assert "is next due at" in (await explained(client, "late"))["summary"]
    await sql.execute("update foliot.jobs set next_at = now() - interval '30 s', fire_at = now() - interval '30 s'")
    found = await explained(client, "late")
    assert "no scheduler node is alive" in found["summary"]
    assert found["gates"][0]["numbers"]["late_seconds"] == pytest.approx(30, abs=20)


async def test_late_and_missed_ticks_are_reported(client: httpx.AsyncClient, sql: Any, worker: None) -> None:
    made = await client.post("/v1/jobs", json={"name": "late", "task": "simulate", "every": "1h"})
    run = (await client.post("/v1/jobs/late/trigger")).json()["id"]
    await sql.execute(
        "update foliot.runs set tick_at = created_at - interval '5 s', due_at = created_at - interval '5 s'"
    )
    gates = {gate["gate"]: gate for gate in (await explained(client, run))["gates"]}
    assert "no scheduler node was running to create it before" in gates["due"]["detail"]
    assert gates["due"]["numbers"]["late_seconds"] >= 5
    await sql.execute(
        "insert into foliot.ticks (job_id, tick_at, noted_at, reason) values ($1, now() + interval '1s', now() + "
        "interval '6s', 'missed')",
        made.json()["id"],
    )
    gates = {gate["gate"]: gate for gate in (await explained(client, "late"))["gates"]}
    assert "became no run: missed: no scheduler node was running until" in gates["tick"]["detail"]
    (note, _) = (await client.get("/v1/jobs/late/ticks")).json()["items"]
    assert (note["outcome"], note["decided_at"] > note["tick_at"]) == ("missed", True)
