"""Workers, queues and totals over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.store import overview
from foliot.store.hints import HintListener, worker_topic
from foliot.store.store import Store
from tests.support.plans import rows_read
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.waiting import until


async def queues(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    answer = await client.get("/v1/queues")
    assert answer.status_code == 200, answer.text
    return {queue["name"]: queue for queue in answer.json()["items"]}


def numbers(queue: dict[str, Any]) -> tuple[int, ...]:
    return tuple(queue[name]["count"] for name in ("ready", "running", "scheduled", "held"))


class TestWorkers:
    async def test_live_workers_are_listed_with_their_runs(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        alive, dead = new_id(), new_id()
        await store.workers.register_worker(alive, "b:1", {"mail": 3, "default": 2}, ["send_invoice"])
        await store.workers.register_worker(dead, "a:2", {"mail": 9}, ["send_invoice"])
        await sql.execute("update foliot.workers set expires_at = now() where id = $1", dead)
        await sql.execute("update foliot.workers set labels = $1", '{"zone": "north"}')
        for _ in range(3):
            await insert(store)
        await claim(store, count=2, worker=alive)
        (worker,) = (await client.get("/v1/workers")).json()["items"]
        assert (worker["id"], worker["name"], worker["health"]) == (str(alive), "b:1", "healthy")
        assert (worker["running"], worker["slots"], worker["queues"]) == (2, 5, {"mail": 3, "default": 2})
        assert (worker["tasks"], worker["labels"], worker["draining_at"]) == (["send_invoice"], {"zone": "north"}, None)
        assert abs(datetime.fromisoformat(worker["last_beat_at"]) - datetime.now(UTC)) < timedelta(minutes=1)

    async def test_a_worker_that_is_silent_for_half_its_lease_is_late(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        await store.workers.register_worker(new_id(), "a", {"mail": 1}, [])
        await sql.execute(
            "update foliot.workers set beat_at = beat_at - interval '8 s', expires_at = expires_at - interval '8 s'"
        )
        assert [worker["health"] for worker in (await client.get("/v1/workers")).json()["items"]] == ["late"]

    async def test_a_drain_is_stored_sent_to_the_worker_and_idempotent(
        self, client: httpx.AsyncClient, store: Store, database_url: str
    ) -> None:
        worker_id, heard = new_id(), list[str]()
        await store.workers.register_worker(worker_id, "a", {"mail": 1}, [])
        listener = HintListener(
            store.database, database_url, heard.append, clock=store.database.clock, events=store.events
        )
        await listener.start()
        await until(lambda: _true(listener.is_listening))
        first = await client.post(f"/v1/workers/{worker_id}/drain")
        assert (first.status_code, first.json()["health"]) == (200, "draining")
        await until(lambda: _true(worker_topic(worker_id) in heard))
        await listener.stop()
        again = await client.post(f"/v1/workers/{worker_id}/drain")
        assert again.json()["draining_at"] == first.json()["draining_at"]
        # Its slots no longer count.
        assert (await queues(client))["mail"]["slots"] == 0

    @pytest.mark.parametrize("reference", [str(new_id()), "x", "%00"], ids=["unknown", "no id", "NUL"])
    async def test_a_dead_worker_is_not_drained(self, client: httpx.AsyncClient, reference: str) -> None:
        assert (await client.post(f"/v1/workers/{reference}/drain")).status_code == 404


class TestQueues:
    async def test_queues_are_listed_with_waiting_and_running_runs_and_workers(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        await store.workers.register_worker(WORKER, "a", {"mail": 3}, [])
        await store.workers.register_worker(new_id(), "b", {"mail": 4, "idle": 1}, [])
        for _ in range(4):
            await insert(store)
        await claim(store, count=1)
        held = await insert(store)
        await sql.execute("update foliot.runs set state = 'held', held_by = 'limit' where id = $1", held)
        await insert(store, delay_seconds=600)
        await insert(store, queue="unworked")
        await sql.execute(
            "update foliot.runs set due_at = due_at - interval '1 min' where state = 'ready' and queue = 'mail'"
        )
        found = await queues(client)
        assert numbers(found["mail"]) == (3, 1, 1, 1)
        assert 59 < found["mail"]["oldest_ready_seconds"] < 120
        assert (found["mail"]["slots"], found["mail"]["workers"]) == (7, 2)
        assert numbers(found["unworked"]) == (1, 0, 0, 0)
        assert (found["unworked"]["slots"], found["idle"]["slots"]) == (0, 1)
        assert found["idle"]["oldest_ready_seconds"] is None
        # A task declares this queue.
        assert numbers(found["default"]) == (0, 0, 0, 0)

    async def test_pauses_and_limits(self, client: httpx.AsyncClient, sql: Any) -> None:
        await sql.execute(
            "insert into foliot.queues (name, max_running, max_depth, updated_at) values ('mail', 5, 100, now())"
        )
        await sql.execute(
            "insert into foliot.pauses (kind, name, paused_at, reason) values ('queue', 'mail', now(), 'a flood')"
        )
        await sql.execute(
            "insert into foliot.pauses (kind, name, paused_at, until_at) values ('queue', 'default', now(), now())"
        )
        found = await queues(client)
        assert (found["mail"]["max_running"], found["mail"]["max_depth"], found["mail"]["paused"]["reason"]) == (
            5,
            100,
            "a flood",
        )
        assert (found["default"]["max_running"], found["default"]["paused"]) == (None, None)
        await sql.execute(
            "insert into foliot.pauses (kind, name, paused_at, reason) values ('everything', '', now(), 'all')"
        )
        found = await queues(client)
        assert (found["default"]["paused"]["reason"], found["mail"]["paused"]["reason"] in ("all", "a flood")) == (
            "all",
            True,
        )

    async def test_counts_are_capped_and_marked(
        self, client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(overview, "COUNT_MAX", 3)
        monkeypatch.setattr("foliot.api.routes.queues.COUNT_MAX", 3)
        for _ in range(5):
            await insert(store)
            await insert(store, delay_seconds=600)
        mail = (await queues(client))["mail"]
        assert (mail["ready"], mail["scheduled"]) == ({"count": 3, "more": True}, {"count": 3, "more": True})
        assert mail["running"] == {"count": 0, "more": False}
        live = (await client.get("/v1/stats")).json()["live"]
        assert (live["ready"], live["held"]) == ({"count": 3, "more": True}, {"count": 0, "more": False})

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [("list_queues", (100, None)), ("count_runs", (100, new_id(), datetime.now(UTC), "default"))],
    )
    async def test_counting_reads_no_table_of_runs_completely(
        self, store: Store, sql: Any, name: str, arguments: tuple[Any, ...]
    ) -> None:
        await sql.execute(
            """
            insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)
            select gen_random_uuid(), now(), now(), n, (array['ready', 'scheduled'])[n % 2 + 1], 'q' || n % 5, 't'
            from generate_series(1, 20000) n
            """
        )
        await sql.execute("analyze foliot.runs")
        assert await rows_read(sql, "overview", name, *arguments) < 2000


async def test_totals(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    await store.workers.register_worker(WORKER, "a", {"mail": 3}, [])
    await finish(store)
    await finish(store)
    await finish(store, RunState.FAILED, error="no")
    await insert(store)
    await claim(store)
    waiting = await insert(store)
    await sql.execute("update foliot.runs set state = 'waiting' where id = $1", waiting)
    await sql.execute(
        "update foliot.shards set owner_id = $1, expires_at = now() + interval '1 min' where id < 7", new_id()
    )
    stats = (await client.get("/v1/stats")).json()
    assert {state: count["count"] for state, count in stats["live"].items()} == {
        "waiting": 1, "running": 1, "ready": 0, "scheduled": 0, "held": 0
    }  # fmt: skip
    assert (stats["finished"]["states"], stats["finished"]["more"]) == (
        {"succeeded": 2, "failed": 1, "cancelled": 0, "skipped": 0},
        False,
    )
    assert stats["workers"] == {"living": 1, "draining": 0, "slots": 3}
    assert stats["schedulers"] == {"living": 0, "shards": 100, "owned_shards": 7}


async def _true(value: bool) -> bool:
    return value
