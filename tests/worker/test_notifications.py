"""Notifications about the ends of runs: one for each requested ending, in the same transaction, and no others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest
from fastapi import FastAPI

from foliot.api.app import build_app
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.notification import notification_ids
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.sdk.app import App
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.support.http import Answering, answer, answering
from tests.support.runs import WORKER, claim, finish, insert
from tests.support.waiting import until
from tests.support.workers import QUICK, ended, submit, worker_node

TOLD = msgspec.structs.replace(QUICK, http_allow_private=True)
HOOK = "https://example.org/hook"


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    async with answering() as found:
        found.answers["/hook"] = answer("204 No Content")
        yield found


@pytest.fixture
async def app(store: Store, config: Config, clock: Clock, events: EventBus) -> AsyncIterator[FastAPI]:
    await store.workers.announce_tasks(
        {"simulate": "default", "shell": "default", "workflow": "default", "map": "default"}
    )
    submitter = Submitter(store=store, clock=clock, events=events)
    await submitter.start()
    yield build_app(store=store, submitter=submitter, config=config, clock=clock, audit=None, is_open=True)
    await submitter.stop()


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost:8000") as client:
        yield client


def options(*notices: dict[str, Any], **others: Any) -> str:
    return json.dumps({"notify": [{"url": HOOK, "on": ["failed"]} | notice for notice in notices or ({},)], **others})


async def messages(sql: Any) -> list[Any]:
    found: list[Any] = await sql.fetch(
        "select id, queue, payload, options from foliot.runs where task = 'http' order by id"
    )
    return found


async def test_a_failure_is_notified_and_a_success_is_not(store: Store, sql: Any) -> None:
    await finish(store, options=options())
    assert await messages(sql) == []
    run_id = await finish(
        store, RunState.FAILED, error="no luck", options=options({"headers": {"X-Key": "k"}}, tags=["red"]), name="x"
    )
    (made,) = await messages(sql)
    payload = json.loads(made["payload"])
    body = payload.pop("body")
    assert payload == {"url": HOOK, "method": "POST", "headers": {"X-Key": "k"}}
    assert (body["id"], body["name"], body["task"], body["queue"], body["status"]) == (
        str(run_id),
        "x",
        "send_invoice",
        "mail",
        "failed",
    )
    assert (body["reason"], body["attempt"], body["tags"]) == ("error", 1, ["red"])
    assert body["error"] == {"kind": "ValueError", "message": "no luck"}
    assert body["finished_at"].endswith("Z")
    assert body["links"] == {"run": f"/v1/runs/{run_id}", "logs": f"/v1/runs/{run_id}/logs"}
    assert (made["queue"], json.loads(made["options"])["notifies"]) == ("mail", str(run_id))


@pytest.mark.parametrize(
    ("state", "reason", "told"),
    [
        (RunState.SUCCEEDED, None, ["completed"]),
        (RunState.FAILED, "error", ["failed"]),
        (RunState.FAILED, "timeout", ["failed", "timeout"]),
        (RunState.CANCELLED, "cancelled", ["cancelled"]),
    ],
    ids=["completed", "failed", "timeout", "cancelled"],
)
async def test_each_keyword_selects_its_endings(
    store: Store, sql: Any, state: RunState, reason: str | None, told: list[str]
) -> None:
    words = ["completed", "failed", "cancelled", "skipped", "timeout"]
    notices = [{"on": [word], "url": f"{HOOK}/{word}", "queue": word} for word in words]
    run_id = await insert(store, options=options(*notices))
    (claimed,) = await claim(store)
    await store.outcomes.finish_runs(WORKER, [Outcome(run_id, claimed.token, state, reason)])
    made = await messages(sql)
    assert {row["queue"] for row in made} == set(told)
    view = await store.runs.get_run(run_id)
    assert view is not None
    assert {row["id"] for row in made} == set(
        notification_ids(run_id, view.options, view.state, view.reason, view.finished_at)
    )


async def test_a_retry_is_not_an_end_and_a_lost_run_is_notified_when_it_fails(store: Store, sql: Any) -> None:
    run_id = await insert(store, options=options({"on": ["lost"]}))
    (claimed,) = await claim(store)
    await store.outcomes.retry_runs(WORKER, [Outcome(run_id, claimed.token, RunState.SCHEDULED, "error")])
    await store.runs.move_runs([run_id], RunState.READY)
    for lost in range(1, 4):
        assert await messages(sql) == []
        await claim(store)
        await store.workers.remove_worker(WORKER)
        found = await store.lost_runs.lose_runs(10, 3)
        assert (found.requeued, found.buried) == ((1, 0) if lost < 3 else (0, 1))
    assert len(await messages(sql)) == 1


async def test_an_invalid_notification_does_not_prevent_the_end_of_a_run(store: Store, sql: Any) -> None:
    for text in (
        '{"notify": 7}',
        '{"notify": [7, null, {"on": 3}, {"on": ["failed"]}]}',
        '{"notify": {"on": ["failed"]}}',
    ):
        await finish(store, RunState.FAILED, options=text)
    assert len(await messages(sql)) == 1


async def test_a_notification_is_delivered_retried_and_never_notifies_about_itself(
    store: Store, server: Answering, client: httpx.AsyncClient
) -> None:
    app = App()

    @app.task(retries=0)
    async def fails() -> None:
        raise ValueError("no luck")

    server.answers["/hook"] = answer("503 Service Unavailable", Retry_After="0")
    async with worker_node(store, app, config=TOLD):
        run = await submit(store, "fails", options=options({"url": f"{server.url}/hook", "headers": {"X-Key": "k"}}))
        await ended(store, run)
        await until(lambda: asyncio.sleep(0, len(server.asked) >= 1))
        server.answers["/hook"] = answer("200 OK", b"thanks")
        (told,) = (await client.get(f"/v1/runs/{run.id}")).json()["notifications"]

        async def is_delivered() -> bool:
            # Promotes retries, as a scheduler node would.
            await store.due_runs.promote_due_runs(10)
            shown = (await client.get(f"/v1/runs/{told}")).json()
            return bool(shown["status"] == "completed")

        await until(is_delivered)
    shown = (await client.get(f"/v1/runs/{told}")).json()
    assert (shown["notifies"], shown["notifications"], shown["task"]) == (str(run.id), [], "http")
    assert shown["attempt"] >= 2
    body = json.loads(server.asked[-1].body)
    assert (body["id"], body["error"]["message"], server.asked[-1].headers["x-key"]) == (str(run.id), "no luck", "k")


async def test_a_notification_goes_only_to_addresses_that_http_allows(store: Store, server: Answering) -> None:
    async with worker_node(store, App()):
        run = await submit(store, "simulate", options=options({"url": f"{server.url}/hook", "on": ["completed"]}))
        view = await ended(store, run)
        (told,) = notification_ids(view.id, view.options, view.state, view.reason, view.finished_at)

        async def refused() -> bool:
            shown = await store.runs.get_run(told)
            return bool(shown and shown.error and shown.error["kind"] == "AddressRefused")

        await until(refused)
    assert server.asked == []


async def test_workflows_and_steps_notify_about_their_own_ends(
    store: Store, sql: Any, client: httpx.AsyncClient
) -> None:
    steps = [
        {
            "key": "bad",
            "task": "simulate",
            "payload": {"fail_rate": 1.0},
            "retries": 0,
            "notify": {"url": f"{HOOK}/bad"},
        },
        {"key": "after", "task": "simulate", "after": ["bad"], "notify": {"url": f"{HOOK}/after", "on": ["skipped"]}},
        {
            "key": "map",
            "task": "simulate",
            "map": {"items": [1, 2]},
            "notify": {"url": f"{HOOK}/map", "on": ["completed"]},
        },
    ]
    made = (await client.post("/v1/workflows", json={"steps": steps, "notify": {"url": f"{HOOK}/all"}})).json()

    async def told() -> list[str]:
        rows = await sql.fetch(
            "select payload from foliot.runs where task = 'http' union all select payload from foliot.history where "
            "task = 'http'"
        )
        return sorted(json.loads(row["payload"])["url"] for row in rows)

    async with worker_node(store, App()):
        await until(lambda: sql.fetchval("select count(*) = 1 from foliot.history where id = $1", UUID(made["id"])))
        assert await told() == [f"{HOOK}/{name}" for name in ("after", "all", "bad", "map")]
    redriven = await client.post(f"/v1/workflows/{made['id']}/redrive")
    assert redriven.json()["run_id"] != made["id"]
    assert "notify" in (await client.get(f"/v1/runs/{redriven.json()['run_id']}")).json()["options"]


async def test_runs_of_a_recurring_job_and_reruns_notify_too(store: Store, sql: Any, client: httpx.AsyncClient) -> None:
    job = {
        "name": "nightly",
        "task": "simulate",
        "every": "1h",
        "queue": "mail",
        "notify": {"url": HOOK, "on": ["completed"]},
    }
    assert (await client.post("/v1/jobs", json=job)).status_code == 201
    run_id = (await client.post("/v1/jobs/nightly/trigger")).json()["id"]
    for number in (1, 2):
        (claimed,) = await claim(store, task="simulate")
        await store.outcomes.finish_runs(WORKER, [Outcome(claimed.run_id, claimed.token, RunState.SUCCEEDED)])
        assert len(await messages(sql)) == number
        if number == 1:
            assert (await client.post(f"/v1/runs/{run_id}/rerun")).status_code == 201
    assert await sql.fetchval("select count(*) from foliot.runs where task = 'http' and job_id is null") == 2
