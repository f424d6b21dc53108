"""The fast path to handlers gives the same answers, and applies the same rules, as the framework's routing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from foliot.api.app import build_app
from foliot.api.fast_path import FastPath
from foliot.api.security.audit_log import AuditLog
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.model.tokens import new_token_text
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from tests.support.audit import entry_for

# Headers that differ between any two answers.
CHANGING = {"x-request-id", "location", "content-length"}
BODIES = {
    "plain": b'{"task": "send_invoice", "payload": {"customer_id": 7}}',
    "later": b'{"task": "send_invoice", "delay_seconds": 60}',
    "recurring": b'{"task": "send_invoice", "cron": "0 3 * * *"}',
    "no_json": b"{",
    "no_object": b"[]",
    "unknown_field": b'{"task": "send_invoice", "colour": "red"}',
    "unknown_task": b'{"task": "no_such"}',
    "nul": b'{"task": "send_invoice", "payload": {"a": "\\u0000"}}',
    "too_large": b'{"task": "' + b"x" * 2_000_000 + b'"}',
}


@pytest.fixture
async def audited(store: Store, config: Config, clock: Clock, events: EventBus) -> AsyncIterator[FastAPI]:
    await store.workers.announce_tasks({"send_invoice": "mail"})
    submitter = Submitter(store=store, clock=clock, events=events)
    audit = AuditLog(store=store, clock=clock, events=events)
    await submitter.start()
    await audit.start()
    yield build_app(store=store, submitter=submitter, config=config, clock=clock, audit=audit, is_open=True)
    await submitter.stop()
    await audit.stop()


def through(app: FastAPI, **settings: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, **settings), base_url="http://localhost:8000")


def handlers_of(app: Any) -> set[tuple[str, str]]:
    fast_path: FastPath = app.authentication._app
    return set(fast_path._handlers)


def test_the_fast_path_has_job_creation_and_no_paths_with_parameters(app: FastAPI) -> None:
    assert {("POST", "/v1/jobs"), ("POST", "/jobs")} <= handlers_of(app)
    assert not [path for _, path in handlers_of(app) if "{" in path]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
async def test_both_paths_give_the_same_answer(audited: FastAPI, name: str, content_type: str, sql: Any) -> None:
    sent: dict[str, Any] = {"content": BODIES[name], "headers": {"Content-Type": content_type}}
    async with through(audited) as short, through(audited, root_path="/behind") as long:
        one, other = await short.post("/v1/jobs", **sent), await long.post("/behind/v1/jobs", **sent)
    assert one.status_code == other.status_code
    shown, as_shown = (
        {key: value for key, value in answer.headers.items() if key not in CHANGING} for answer in (one, other)
    )
    assert shown == as_shown
    assert one.json().keys() == other.json().keys()
    assert one.json().get("code") == other.json().get("code")
    assert one.headers["x-request-id"] != other.headers["x-request-id"]
    recorded = await sql.fetch(
        "select actor, action, target is null, status, code, role, namespace, address, method from foliot.audit"
    )
    assert len(recorded) == 2
    assert recorded[0] == recorded[1]


async def test_an_unexpected_error_is_answered_recorded_and_raised(audited: FastAPI, sql: Any) -> None:
    with patch("foliot.submission.admission.new_id", side_effect=ZeroDivisionError):
        async with through(audited, raise_app_exceptions=False) as client:
            answer = await client.post("/v1/jobs", json={"task": "send_invoice"})
        assert (answer.status_code, answer.json()["code"]) == (500, "internal")
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        async with through(audited) as client:
            with pytest.raises(ZeroDivisionError):
                await client.post("/v1/jobs", json={"task": "send_invoice"})
    assert [tuple(row) for row in await sql.fetch("select status, code from foliot.audit")] == [(500, "internal")] * 2


async def test_a_refusal_that_can_not_be_recorded_is_a_problem_document(audited: FastAPI, store: Store) -> None:
    with patch.object(type(store.audit_log), "insert_audit", side_effect=StoreUnavailable("PostgreSQL: away")):
        async with through(audited) as client:
            answer = await client.post(
                "/v1/jobs", json={"task": "send_invoice"}, headers={"Origin": "http://evil.example"}
            )
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert answer.headers["x-request-id"] == answer.json()["request_id"]


async def test_health_checks_work_when_tokens_can_not_be_read(audited: FastAPI, store: Store) -> None:
    headers = {"Authorization": f"Bearer {new_token_text()[0]}"}
    with patch.object(type(store.tokens), "find_token", side_effect=ZeroDivisionError):
        async with through(audited, raise_app_exceptions=False) as client:
            healthy, refused = (
                await client.get("/healthz", headers=headers),
                await client.get("/v1/runs", headers=headers),
            )
    assert healthy.status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (500, "internal")


async def test_an_earlier_matching_route_takes_precedence(app: FastAPI) -> None:
    other = Route("/v1/{anything}", lambda _: None, methods=["POST"])
    fast_path = FastPath(app, [other, *app.routes])
    assert ("POST", "/v1/jobs") not in fast_path._handlers
    assert ("POST", "/jobs") in fast_path._handlers


async def test_a_job_and_its_audit_entry_are_stored_together(audited: FastAPI, sql: Any) -> None:
    async with through(audited) as client:
        made = await asyncio.gather(*(client.post("/v1/jobs", json={"task": "send_invoice"}) for _ in range(20)))
    assert {answer.status_code for answer in made} == {201}
    rows = await sql.fetch(
        "select r.id::text, a.xmin = r.xmin, a.status, a.action, a.request_id "
        "from foliot.audit a join foliot.runs r on r.id::text = a.target"
    )
    assert {tuple(row) for row in rows} == {
        (answer.json()["id"], True, 201, "create_job", answer.headers["x-request-id"]) for answer in made
    }
    assert await sql.fetchval("select count(*) from foliot.audit") == 20


async def test_a_job_of_the_lab_is_recorded_with_its_id(audited: FastAPI, store: Store, sql: Any) -> None:
    await store.workers.announce_tasks({"simulate": "default"})
    async with through(audited) as client:
        made = await client.post("/jobs", json={"name": "quick", "job_type": "immediate", "execution_time_ms": 50})
    assert made.status_code == 201, made.text
    noted = await sql.fetch("select target, action, status from foliot.audit")
    assert [tuple(row) for row in noted] == [(str(await sql.fetchval("select id from foliot.runs")), "create_job", 201)]


async def test_a_missing_partition_of_the_audit_log_is_created(audited: FastAPI, sql: Any) -> None:
    for name in [
        row[0]
        for row in await sql.fetch("select relname from pg_class where relname ~ '^audit_[0-9]+$' and relkind = 'r'")
    ]:
        await sql.execute(f"drop table foliot.{name}")
    async with through(audited) as client:
        assert (await client.post("/v1/jobs", json={"task": "send_invoice"})).status_code == 201
    assert (
        await sql.fetchval("select count(*) from foliot.audit")
        == await sql.fetchval("select count(*) from foliot.runs")
        == 1
    )


async def test_an_invalid_job_is_not_recorded_and_does_not_fail_others(
    store: Store, clock: Clock, events: EventBus, sql: Any
) -> None:
    submitter = Submitter(store=store, clock=clock, events=events)
    runs = [
        NewRun(id=new_id(), task="a", queue="b", payload=payload)
        for payload in ('{"n": 1}', '{"n": 1e999999}', '{"n": 2}')
    ]
    submitting = [asyncio.create_task(submitter.submit(run, entry_for(run))) for run in runs]
    await asyncio.sleep(0)
    await submitter.start()
    found = await asyncio.gather(*submitting, return_exceptions=True)
    await submitter.stop()
    assert [isinstance(one, Exception) for one in found] == [False, True, False]
    assert {row[0] for row in await sql.fetch("select target from foliot.audit")} == {str(runs[0].id), str(runs[2].id)}
    assert await sql.fetchval("select count(*) from foliot.runs") == 2
