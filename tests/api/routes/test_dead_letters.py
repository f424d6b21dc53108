"""Dead letters and reruns over HTTP: grouped, listed, replayed once, and pointing back."""

from __future__ import annotations

import asyncio
from datetime import datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.api.routes import dead_letters
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store, open_store
from tests.support.jobs import make_job
from tests.support.proxy import proxy_to
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.workers import QUICK


async def groups(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await client.get("/v1/dead-letters", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def flat(client: httpx.AsyncClient, **query: Any) -> list[str]:
    found: list[str] = []
    query.setdefault("flat", "1")
    while True:
        answer = await client.get("/v1/dead-letters", params=query)
        assert answer.status_code == 200, answer.text
        found += [item["id"] for item in answer.json()["items"]]
        if answer.json()["next"] is None:
            return found
        query["after"] = answer.json()["next"]


async def replay(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/dead-letters/replay", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def three(store: Store) -> list[str]:
    """Two of a kind and one of another; beside them, what is no dead letter."""
    await finish(store)
    dead = [
        await finish(store, RunState.FAILED, error="customer 7 is unknown"),
        await finish(store, RunState.FAILED, error="customer 12 is unknown"),
        await finish(store, RunState.FAILED, error="no money", task="simulate", queue="default"),
    ]
    await insert(store)
    return [str(run_id) for run_id in dead]


async def test_failures_of_a_kind_are_one_group_with_a_sample(client: httpx.AsyncClient, store: Store) -> None:
    dead = await three(store)
    first, second = await groups(client)
    assert (first["count"], first["task"], first["queue"], first["kind"]) == (2, "send_invoice", "mail", "ValueError")
    assert (first["message"], first["sample_id"]) == ("customer 12 is unknown", dead[1])
    assert first["first_at"] < first["last_at"]
    assert (second["count"], second["sample_id"]) == (1, dead[2])
    assert await flat(client, group=first["fingerprint"]) == dead[1::-1]
    assert [group["count"] for group in await groups(client, task="simulate")] == [1]
    assert [group["count"] for group in await groups(client, queue="mail")] == [2]
    assert await groups(client, until="1h") == []


async def test_the_same_error_of_another_task_is_another_group(client: httpx.AsyncClient, store: Store) -> None:
    await finish(store, RunState.FAILED, error="no")
    await finish(store, RunState.FAILED, error="no", task="simulate")
    assert [group["count"] for group in await groups(client)] == [1, 1]


async def test_a_flat_list_in_pages_with_filters(client: httpx.AsyncClient, store: Store) -> None:
    dead = await three(store)
    for limit in (1, 2, 50):
        assert await flat(client, limit=limit) == dead[::-1]
        assert await flat(client, limit=limit, queue="mail") == dead[1::-1]
    assert await flat(client, task="simulate") == dead[2:]
    assert await flat(client, since="1h") == dead[::-1]
    assert await flat(client, until="1h") == []
    item = (await client.get("/v1/dead-letters?flat=1&limit=1")).json()["items"][0]
    assert item["error"] == {"kind": "ValueError", "message": "no money"}


async def test_what_a_dead_worker_leaves_behind_is_grouped_by_task(client: httpx.AsyncClient, store: Store) -> None:
    for task in ("send_invoice", "send_invoice", "simulate"):
        await insert(store, task=task)
        await claim(store, task=task)
    await store.workers.remove_worker(WORKER)
    await store.runs.lose_runs(100, 1)
    assert [(group["count"], group["kind"]) for group in await groups(client)] == [(2, "WorkerLost"), (1, "WorkerLost")]


async def test_replaying_makes_new_runs_that_point_back_and_only_once(client: httpx.AsyncClient, store: Store) -> None:
    dead = await three(store)
    done = await replay(client, ids=dead)
    assert (done["count"], done["skipped"], [item["id"] for item in done["items"]]) == (3, [], dead)
    new = (await client.get(f"/v1/runs/{done['items'][0]['run_id']}")).json()
    assert (new["status"], new["rerun_of"], new["attempt"], new["task"]) == ("pending", dead[0], 0, "send_invoice")
    assert (await client.get(f"/v1/runs/{dead[0]}")).json()["rerun_as"] == new["id"]
    again = await replay(client, ids=dead)
    assert (again["count"], again["skipped"]) == (0, dead)
    assert await groups(client) == []
    assert await flat(client) == []
    assert await flat(client, replayed="1") == dead[::-1]
    assert (await replay(client, filter={}))["count"] == 0
    assert (await replay(client, ids=[dead[0]], again=True))["count"] == 1


async def test_two_who_replay_at_the_same_time_do_not_double(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    dead = [str(await finish(store, RunState.FAILED, error="no")) for _ in range(20)]
    answers = await asyncio.gather(
        *(replay(client, ids=dead) for _ in range(4)),
        *(replay(client, filter={"task": "send_invoice"}) for _ in range(4)),
    )
    assert sum(answer["count"] for answer in answers) == 20
    assert (
        await sql.fetchval("select count(*) from foliot.runs")
        == await sql.fetchval("select count(distinct rerun_of) from foliot.runs")
        == 20
    )


async def test_a_replay_whose_answer_got_lost_is_made_once_and_told(database_url: str, store: Store, sql: Any) -> None:
    dead, new = await finish(store, RunState.FAILED, error="no"), new_id()
    async with (
        proxy_to(database_url) as (proxy, url),
        open_store(url, config=QUICK, clock=store.database.clock, events=store.events, part="test") as lossy,
    ):
        proxy.swallow_answer_to("set rerun_as")
        made = await lossy.dead_letters.rerun_runs(Namespace(), {dead: new})
    assert proxy.swallowed.is_set()
    assert [(rerun.old_id, rerun.new_id) for rerun in made] == [(dead, new)]
    assert await sql.fetchval("select array_agg(id) from foliot.runs") == [new]


async def test_by_filter_spread_over_time_with_another_payload(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "REPLAY_BATCH", 2)
    dead = [str(await finish(store, RunState.FAILED, error="no", payload='{"a": 1}')) for _ in range(5)]
    other = await finish(store, RunState.FAILED, error="no", task="simulate")
    dry = await replay(client, filter={"task": "send_invoice"}, dry_run=True)
    assert (dry["count"], dry["is_dry_run"], dry["items"][0]["run_id"]) == (5, True, None)
    done = await replay(client, filter={"task": "send_invoice"}, rate_per_second=0.5, payload={"a": 2})
    assert [item["id"] for item in done["items"]] == dead
    runs = [(await client.get(f"/v1/runs/{item['run_id']}")).json() for item in done["items"]]
    assert [run["payload"] for run in runs] == [{"a": 2}] * 5
    times = [datetime.fromisoformat(run["scheduled_at"]) for run in runs]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    assert all(1.9 < gap < 3 for gap in gaps), gaps
    assert [run["status"] for run in runs] == ["pending", *["scheduled"] * 4]
    assert await flat(client) == [str(other)]


async def test_no_more_than_a_bounded_number_at_once_and_it_is_said(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "REPLAY_MAX", 3)
    monkeypatch.setattr(dead_letters, "SCAN_MAX", 2)
    for _ in range(4):
        await finish(store, RunState.FAILED, error="no")
    counts = [(done["count"], done["more"]) for done in [await replay(client, filter={}) for _ in range(2)]]
    assert counts == [(3, True), (1, False)]


async def test_only_dead_letters_are_replayed(client: httpx.AsyncClient, store: Store) -> None:
    ids = [str(await finish(store)), str(await insert(store)), str(new_id())]
    assert (await replay(client, ids=ids))["skipped"] == ids
    assert (await replay(client, ids=ids, dry_run=True))["skipped"] == ids


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "ids"),
        ({"ids": [str(new_id())], "filter": {}}, "ids"),
        ({"ids": []}, "ids"),
        ({"ids": ["x"]}, "ids[0]"),
        ({"filter": {"colour": "red"}}, "filter.colour"),
        ({"filter": {"since": "soon"}}, "since"),
        ({"filter": {}, "rate_per_second": 0}, "rate_per_second"),
        ({"filter": {}, "payload": []}, "payload"),
    ],
)
async def test_a_replay_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/dead-letters/replay", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


@pytest.mark.parametrize("query", ["since=soon", "limit=0", "group=%00", "flat=1&after=x"])
async def test_a_list_that_makes_no_sense_is_refused(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/v1/dead-letters?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, query.removeprefix("flat=1&").partition("=")[0])


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED])
async def test_whatever_has_ended_can_be_rerun_as_often_as_one_likes(
    client: httpx.AsyncClient, store: Store, state: RunState
) -> None:
    old = await finish(store, state, error="no", payload='{"a": 1}', name="mine", priority=3)
    first = await client.post(f"/v1/runs/{old}/rerun")
    assert (first.status_code, first.headers["location"]) == (201, f"/v1/runs/{first.json()['id']}")
    run = first.json()
    assert (run["rerun_of"], run["payload"], run["name"], run["priority"], run["status"]) == (
        str(old),
        {"a": 1},
        "mine",
        3,
        "pending",
    )
    second = (await client.post(f"/v1/runs/{old}/rerun", json={"payload": {"b": [1]}})).json()
    assert (second["rerun_of"], second["payload"]) == (str(old), {"b": [1]})
    assert (await client.get(f"/v1/runs/{old}")).json()["rerun_as"] == second["id"]
    # It stays so when the new run ends in its turn.
    (claimed, _) = await claim(store, count=2)
    await store.runs.finish_runs(WORKER, [Outcome(claimed.run_id, claimed.token, RunState.SUCCEEDED)])
    assert (await client.get(f"/v1/runs/{claimed.run_id}")).json()["rerun_of"] == str(old)


async def test_a_rerun_of_a_tick_belongs_to_its_job(client: httpx.AsyncClient, store: Store) -> None:
    job = await make_job(store, name="nightly", task="send_invoice", every="1h")
    run_id = UUID((await client.post("/v1/jobs/nightly/trigger")).json()["id"])
    (claimed,) = await claim(store, queue="default")
    await store.runs.finish_runs(WORKER, [Outcome(run_id, claimed.token, RunState.SUCCEEDED)])
    again = (await client.post(f"/v1/runs/{run_id}/rerun")).json()
    assert again["job_id"] == str(job.id)
    assert [item["id"] for item in (await client.get("/v1/jobs/nightly/runs")).json()["items"]] == [
        again["id"],
        str(run_id),
    ]


async def test_what_is_live_can_not_be_rerun(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    run_id = await insert(store)
    answer = await client.post(f"/v1/runs/{run_id}/rerun")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert (await client.post(f"/v1/runs/{new_id()}/rerun")).status_code == 404
    assert (await client.post(f"/v1/runs/{run_id}/rerun", json={"payload": 1})).json()["field"] == "payload"
    assert await sql.fetchval("select count(*) from foliot.runs") == 1


async def test_how_often_a_run_was_put_off_does_not_count_for_its_rerun(
    client: httpx.AsyncClient, store: Store
) -> None:
    for queue, options, expected in (
        ("a", '{"snoozes": 7}', None),
        ("b", '{"snoozes": 7, "retries": 2}', {"retries": 2}),
    ):
        run_id = await finish(store, RunState.FAILED, error="no", options=options, queue=queue)
        made = (await client.post(f"/v1/runs/{run_id}/rerun")).json()
        assert made["options"] == expected
