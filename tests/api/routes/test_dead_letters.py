"""Dead letters and reruns over HTTP: grouped, listed, replayed once, with references to the old runs."""

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
    """Two similar dead letters and a different one, and runs that are not dead letters."""
    await finish(store)
    dead = [
        await finish(store, RunState.FAILED, error="customer 7 is unknown"),
        await finish(store, RunState.FAILED, error="customer 12 is unknown"),
        await finish(store, RunState.FAILED, error="no money", task="simulate", queue="default"),
    ]
    await insert(store)
    return [str(run_id) for run_id in dead]


async def test_similar_failures_are_one_group_with_a_sample(client: httpx.AsyncClient, store: Store) -> None:
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


async def test_lost_runs_are_grouped_by_task(client: httpx.AsyncClient, store: Store) -> None:
    for task in ("send_invoice", "send_invoice", "simulate"):
        await insert(store, task=task)
        await claim(store, task=task)
    await store.workers.remove_worker(WORKER)
    await store.lost_runs.lose_runs(100, 1)
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


async def test_concurrent_replays_do_not_duplicate_runs(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
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


async def test_a_replay_with_a_lost_answer_happens_once_and_is_reported(
    database_url: str, store: Store, sql: Any
) -> None:
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


async def test_dead_letters_are_replayed_by_filter_at_a_rate_with_another_payload(
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


async def test_one_request_replays_a_bounded_number_and_reports_more(
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
async def test_an_invalid_replay_is_refused(client: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    answer = await client.post("/v1/dead-letters/replay", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


@pytest.mark.parametrize("query", ["since=soon", "limit=0", "group=%00", "flat=1&after=x"])
async def test_an_invalid_list_request_is_refused(client: httpx.AsyncClient, query: str) -> None:
    answer = await client.get(f"/v1/dead-letters?{query}")
    assert (answer.status_code, answer.json()["field"]) == (422, query.removeprefix("flat=1&").partition("=")[0])


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED])
async def test_an_ended_run_can_be_rerun_any_number_of_times(
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
    # The reference stays after the new run has ended.
    (claimed, _) = await claim(store, count=2)
    await store.outcomes.finish_runs(WORKER, [Outcome(claimed.run_id, claimed.token, RunState.SUCCEEDED)])
    assert (await client.get(f"/v1/runs/{claimed.run_id}")).json()["rerun_of"] == str(old)


async def test_a_rerun_of_a_tick_belongs_to_its_job(client: httpx.AsyncClient, store: Store) -> None:
    job = await make_job(store, name="nightly", task="send_invoice", every="1h")
    run_id = UUID((await client.post("/v1/jobs/nightly/trigger")).json()["id"])
    (claimed,) = await claim(store, queue="default")
    await store.outcomes.finish_runs(WORKER, [Outcome(run_id, claimed.token, RunState.SUCCEEDED)])
    again = (await client.post(f"/v1/runs/{run_id}/rerun")).json()
    assert again["job_id"] == str(job.id)
    assert [item["id"] for item in (await client.get("/v1/jobs/nightly/runs")).json()["items"]] == [
        again["id"],
        str(run_id),
    ]


async def test_a_live_run_can_not_be_rerun(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    run_id = await insert(store)
    answer = await client.post(f"/v1/runs/{run_id}/rerun")
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert (await client.post(f"/v1/runs/{new_id()}/rerun")).status_code == 404
    assert (await client.post(f"/v1/runs/{run_id}/rerun", json={"payload": 1})).json()["field"] == "payload"
    assert await sql.fetchval("select count(*) from foliot.runs") == 1


async def test_a_rerun_does_not_inherit_snoozes(client: httpx.AsyncClient, store: Store) -> None:
    for queue, options, expected in (
        ("a", '{"snoozes": 7}', None),
        ("b", '{"snoozes": 7, "retries": 2}', {"retries": 2}),
    ):
        run_id = await finish(store, RunState.FAILED, error="no", options=options, queue=queue)
        made = (await client.post(f"/v1/runs/{run_id}/rerun")).json()
        assert made["options"] == expected


async def test_a_group_has_a_trend_a_note_and_can_be_dismissed(client: httpx.AsyncClient, store: Store) -> None:
    # Without the run that `three` leaves waiting.
    dead = [str(await finish(store, RunState.FAILED, error=f"customer {number} is unknown")) for number in (7, 12)]
    dead.append(str(await finish(store, RunState.FAILED, error="no money", task="simulate", queue="default")))
    (first, _) = await groups(client, since="24h")
    assert (len(first["trend"]), sum(first["trend"]), first["trend"][-1]) == (24, 2, 2)
    path = f"/v1/dead-letters/groups/{first['fingerprint']}"
    noted = await client.put(f"{path}/note", json={"note": " wait for <b>Tuesday</b> "})
    assert (noted.status_code, noted.json()["note"], noted.json()["noted_by"]) == (
        200,
        "wait for <b>Tuesday</b>",
        "local",
    )
    assert (await client.put(f"{path}/note", json={"note": 7})).json()["field"] == "note"
    assert (await client.put(f"{path}/note", json={"note": "x" * 2001})).status_code == 422
    dismissed = await client.post(f"{path}/dismiss", json={"until": first["last_at"]})
    assert (dismissed.status_code, dismissed.json()["dismissed_by"], dismissed.json()["open"]) == (200, "local", 0)
    assert [group["count"] for group in await groups(client)] == [1]
    assert [group["count"] for group in await groups(client, dismissed="1")] == [2, 1]
    assert await flat(client) == dead[2:]
    assert (await replay(client, filter={"group": first["fingerprint"]}, dry_run=True))["count"] == 0
    assert (await replay(client, filter={"group": first["fingerprint"], "dismissed": True}, dry_run=True))["count"] == 2
    # A failure after those that were seen brings the group back.
    await finish(store, RunState.FAILED, error="customer 99 is unknown")
    assert [group["count"] for group in await groups(client)] == [1, 1]
    shown = (await client.get(path)).json()
    assert (shown["count"], shown["open"], shown["note"]) == (3, 1, "wait for <b>Tuesday</b>")
    assert (await client.post(f"{path}/restore")).json()["dismissed_until"] is None
    assert [group["count"] for group in await groups(client)] == [3, 1]
    assert (await client.put(f"{path}/note", json={"note": None})).json()["note"] is None
    for missing in ("get", "post"):
        answer = await client.request(
            missing, "/v1/dead-letters/groups/nothing" + ("/dismiss" if missing == "post" else "")
        )
        assert answer.status_code == 404


async def test_a_replay_with_a_canary_waits_for_its_first_run(client: httpx.AsyncClient, store: Store) -> None:
    dead = await three(store)
    (group, _) = await groups(client)
    asked = {"filter": {"group": group["fingerprint"]}, "canary": True, "rate_per_second": 50}
    started = await replay(client, **asked)
    # The latest failure goes first.
    assert ([item["id"] for item in started["items"]], started["count"]) == ([dead[1]], 1)
    path = f"/v1/dead-letters/replays/{started['replay_id']}"
    shown = (await client.get(path)).json()
    assert (shown["state"], shown["total"], shown["started"], shown["canary_of"]) == ("waiting", 2, 1, dead[1])
    assert shown["canary_id"] == started["items"][0]["run_id"]
    second = await client.post(
        "/v1/dead-letters/replay", json=asked | {"filter": {"group": group["fingerprint"]}, "again": True}
    )
    assert (second.status_code, second.json()["code"]) == (409, "conflict")
    (listed,) = (await client.get("/v1/dead-letters/replays", params={"group": group["fingerprint"]})).json()["items"]
    assert listed["id"] == started["replay_id"]
    assert (await client.get("/v1/dead-letters/replays", params={"group": "another"})).json()["items"] == []
    stopped = (await client.post(f"{path}/stop")).json()
    assert (stopped["state"], stopped["reason"]) == ("stopped", "local stopped it")
    assert (await client.post(f"{path}/stop")).json() == stopped
    for missing in (new_id(), "nothing"):
        assert (await client.get(f"/v1/dead-letters/replays/{missing}")).status_code == 404
    assert (await replay(client, ids=[dead[2]], canary=True, dry_run=True))["replay_id"] is None
