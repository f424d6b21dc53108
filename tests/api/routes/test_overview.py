"""The state of a namespace at a glance: numbers, what needs attention, and what fires in the next hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from foliot.model.ids import new_id
from foliot.store.store import Store
from tests.support.jobs import make_job
from tests.support.runs import insert

HELD_FOR_SIGNAL = """
insert into foliot.runs (id, created_at, due_at, rank, state, held_by, queue, task, name)
select gen_random_uuid(), now(), now() - n * interval '1 minute', n, 'held', 'signal', 'default', 't', 'approve ' || n
from generate_series(1, 3) n
"""
FAILED = """
insert into foliot.history (
    id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, job_id,
        tick_at, fingerprint, error
)
select gen_random_uuid(), at, at, at, at, 1, 1, 0, 0, $1, 'default', 't', $2, at, 'print', '{"message": "no route"}'
from unnest($3::timestamptz[]) at
"""


async def overview(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.get("/v1/overview")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def entries(client: httpx.AsyncClient, kind: str) -> list[dict[str, Any]]:
    return [entry for entry in (await overview(client))["attention"] if entry["kind"] == kind]


async def test_an_empty_installation_says_so_until_something_is_created(
    client: httpx.AsyncClient, store: Store
) -> None:
    empty = await overview(client)
    assert (empty["is_empty"], empty["attention"], sum(empty["next_hour"]["minutes"])) == (True, [], 0)
    await insert(store)
    assert not (await overview(client))["is_empty"]


async def test_numbers_tell_what_waits_runs_and_failed(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await store.workers.register_worker(new_id(), "w", {"mail": 4}, ["send_invoice"])
    for _ in range(3):
        await insert(store)
    await sql.execute("update foliot.runs set due_at = now() - interval '90 s'")
    now = datetime.now(UTC)
    await sql.execute(FAILED, "failed", None, [now, now - timedelta(minutes=59), now - timedelta(minutes=61)])
    seen = await overview(client)
    assert (seen["ready"], seen["failed"]) == ({"count": 3, "more": False}, {"count": 2, "more": False})
    assert (seen["slots"], seen["workers"], seen["oldest_ready_queue"]) == (4, 1, "mail")
    assert 85 < seen["oldest_ready_seconds"] < 200


async def test_a_tick_that_nobody_fires_is_late(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await make_job(store, name="report", every="1h")
    assert (await overview(client))["late_ticks"]["count"] == 0
    await sql.execute(
        "update foliot.jobs set next_at = now() - interval '1 minute', fire_at = now() - interval '1 minute'"
    )
    late = await overview(client)
    assert late["late_ticks"]["count"] == 1
    assert late["late_seconds"] > 55


async def test_a_job_fails_in_a_row_until_it_succeeds(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    job = await make_job(store, name="nightly", every="1h")
    now = datetime.now(UTC)
    ago = [now - timedelta(minutes=n) for n in (1, 2, 30)]
    await sql.execute(FAILED, "failed", job.id, [ago[0], ago[1]])
    await sql.execute(FAILED, "succeeded", job.id, [ago[2]])
    (entry,) = await entries(client, "failing_job")
    assert (entry["reference"], entry["count"]) == ("nightly", 2)
    await sql.execute(FAILED, "succeeded", job.id, [now])
    assert await entries(client, "failing_job") == []


async def test_failures_of_one_kind_that_become_more_are_a_growing_group(client: httpx.AsyncClient, sql: Any) -> None:
    now = datetime.now(UTC)
    await sql.execute(FAILED, "failed", None, [now - timedelta(hours=4), now - timedelta(hours=5)])
    await sql.execute(FAILED, "failed", None, [now - timedelta(minutes=n) for n in (1, 2)])
    assert await entries(client, "growing_group") == []
    await sql.execute(FAILED, "failed", None, [now])
    (entry,) = await entries(client, "growing_group")
    assert (entry["reference"], entry["count"], entry["before"], entry["text"]) == ("print", 3, 2, "no route")


async def test_pauses_circuits_approvals_late_workers_and_ended_schedules_are_listed(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    for name in ("paused", "over"):
        await make_job(store, name=name, every="1h")
    await make_job(store, name="once", times=(datetime.now(UTC) - timedelta(days=1),))
    await client.post("/v1/jobs/paused/pause", json={"reason": "moving"})
    await client.post("/v1/queues/mail/pause", json={"reason": "maintenance"})
    await sql.execute("update foliot.jobs set next_at = null, fire_at = null where name = 'over'")
    await sql.execute(
        "insert into foliot.circuits (task, failures, open_until, updated_at) values ('t', 5, now() + interval '1 h', "
        "now())"
    )
    await sql.execute(HELD_FOR_SIGNAL)
    await store.workers.register_worker(new_id(), "silent", {"mail": 1}, [])
    await sql.execute(
        "update foliot.workers set beat_at = beat_at - interval '8 s', expires_at = expires_at - interval '8 s'"
    )
    found = (await overview(client))["attention"]
    shown = [(entry["kind"], entry["name"], entry.get("of"), entry.get("count")) for entry in found]
    assert sorted(shown[:2]) == [("pause", "mail", "queue", None), ("pause", "paused", "job", None)]
    assert shown[2:] == [
        ("late_worker", "silent", None, None),
        ("open_circuit", "t", None, 5),
        ("approvals", "approve 3", None, 3),
        ("ended_job", "over", None, None),
    ]


async def test_another_namespace_sees_nothing_of_it(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await make_job(store, name="nightly", every="1m")
    await sql.execute(HELD_FOR_SIGNAL)
    await client.post("/v1/queues/mail/pause", json={})
    answer = await client.get("/v1/overview", headers={"Foliot-Namespace": "team"})
    seen = answer.json()
    assert (seen["is_empty"], seen["attention"], sum(seen["next_hour"]["minutes"])) == (True, [], 0)


async def test_the_next_hour_counts_the_ticks_of_each_minute(client: httpx.AsyncClient, store: Store) -> None:
    await make_job(store, name="often", cron="*/10 * * * *")
    await make_job(store, name="very often", cron="* * * * *")
    minutes = (await overview(client))["next_hour"]["minutes"]
    assert len(minutes) == 60
    # The ticks of the minute that has begun have fired already.
    assert 58 + 5 <= sum(minutes) <= 60 + 6
    assert set(minutes[1:]) == {1, 2}
