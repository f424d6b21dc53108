"""A request that creates something either creates it and records it once, or answers with an error and creates nothing.

Nothing after the commit may fail. A lost confirmation from PostgreSQL causes neither an error nor a second job.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi import FastAPI

from foliot.api.app import build_app
from foliot.api.security.audit_log import AuditLog
from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.sdk.direct_client import DatabaseClient
from foliot.sdk.jobs import Alike
from foliot.store.audit_log import AuditEntry
from foliot.store.store import Store, open_store
from foliot.submission.submitter import Submitter
from tests.support.jobs import make_job
from tests.support.proxy import Proxy, proxy_to
from tests.support.runs import finish
from tests.support.tokens import bearer, make_token
from tests.support.waiting import until

FAIR: dict[str, Any] = {"task": "send_invoice", "fairness_key": "customer 7"}
PLAIN: dict[str, Any] = {"task": "send_invoice"}
TASKS = {"send_invoice": "mail", "workflow": "default"}
# The table in which each request creates rows.
RUNS, JOBS, PARENTS, TOKENS = "foliot.runs", "foliot.jobs", "foliot.parents", "foliot.tokens"
Request = tuple[str, str, dict[str, Any], dict[str, str], str, int]
CREATING: dict[str, Request] = {
    "plain": ("POST", "/v1/jobs", PLAIN, {}, RUNS, 1),
    "fair": ("POST", "/v1/jobs", FAIR, {}, RUNS, 1),
    "unique": ("POST", "/v1/jobs", PLAIN | {"unique": {"key": "k"}}, {}, RUNS, 1),
    "fair and unique": ("POST", "/v1/jobs", FAIR | {"unique": {"key": "k"}}, {}, RUNS, 1),
    "keyed": ("POST", "/v1/jobs", PLAIN, {"Idempotency-Key": "k"}, RUNS, 1),
    "fair and keyed": ("POST", "/v1/jobs", FAIR, {"Idempotency-Key": "k"}, RUNS, 1),
    "batch": ("POST", "/v1/jobs/batch", {"jobs": [PLAIN, FAIR, PLAIN]}, {}, RUNS, 3),
    "batch of the same": ("POST", "/v1/jobs/batch", {"jobs": [PLAIN] * 3}, {}, RUNS, 3),
    "batch with a unique key": (
        "POST",
        "/v1/jobs/batch",
        {"jobs": [PLAIN, FAIR | {"unique": {"key": "k"}}]},
        {},
        RUNS,
        2,
    ),
    "keyed batch": ("POST", "/v1/jobs/batch", {"jobs": [FAIR, PLAIN]}, {"Idempotency-Key": "k"}, RUNS, 2),
    "recurring": ("POST", "/v1/jobs", PLAIN | {"name": "new", "cron": "0 3 * * *"}, {}, JOBS, 1),
    "keyed and recurring": (
        "POST",
        "/v1/jobs",
        PLAIN | {"name": "new", "every": "1h"},
        {"Idempotency-Key": "k"},
        JOBS,
        1,
    ),
    "dependent": ("POST", "/v1/jobs", PLAIN | {"dependencies": ["{ended}"]}, {}, RUNS, 1),
    "workflow": ("POST", "/v1/workflows", {"steps": [{"key": "a", "task": "send_invoice"}]}, {}, PARENTS, 1),
    "keyed workflow": (
        "POST",
        "/v1/workflows",
        {"steps": [{"key": "a", **PLAIN}]},
        {"Idempotency-Key": "k"},
        PARENTS,
        1,
    ),
    "later workflow": ("POST", "/v1/workflows", {"delay_seconds": 60, "steps": [{"key": "a", **PLAIN}]}, {}, RUNS, 1),
    "triggered": ("POST", "/v1/jobs/nightly/trigger", {}, {}, RUNS, 1),
    "triggered together": ("POST", "/v1/jobs/trigger", {"name": "nightly", "expected": 1}, {}, RUNS, 1),
    "rerun": ("POST", "/v1/runs/{ended}/rerun", {}, {}, RUNS, 1),
    "token": ("POST", "/v1/tokens", {"name": "ci", "role": "submitter"}, {}, TOKENS, 1),
}

# Requests that are stored by one statement.
ALONE = ("plain", "fair", "batch", "batch of the same", "later workflow")


class Bench:
    """The API on a store whose answers can be lost, and the audit log of its requests."""

    def __init__(self, client: httpx.AsyncClient, store: Store, sql: Any, proxy: Proxy, token: str) -> None:
        self.client = client
        self.store = store
        self.sql = sql
        self.proxy = proxy
        self._token = token
        self.ended: UUID

    async def prepare(self) -> None:
        self.ended = await finish(self.store, RunState.SUCCEEDED)
        await make_job(self.store, name="nightly", task="send_invoice", every="1h")

    async def send(self, request: Request) -> httpx.Response:
        method, path, body, headers, _, _ = request
        given = {name: [str(self.ended)] if name == "dependencies" else value for name, value in body.items()}
        path = path.format(ended=self.ended)
        return await self.client.request(method, path, json=given, headers=bearer(self._token) | headers)

    async def count(self, table: str) -> int:
        found: int = await self.sql.fetchval(f"select count(*) from {table}")
        return found

    async def recorded(self) -> list[tuple[int, int]]:
        """The status of each entry, and how many times the entry is stored."""
        rows = await self.sql.fetch("select status, count(*) from foliot.audit group by id, status order by status")
        return [(row[0], row[1]) for row in rows]


@pytest.fixture
async def bench(database_url: str, config: Config, clock: Clock, events: EventBus, sql: Any) -> AsyncIterator[Bench]:
    async with (
        proxy_to(database_url) as (proxy, url),
        open_store(url, config=config, clock=clock, events=events, part="test") as store,
    ):
        await store.workers.announce_tasks(TASKS)
        submitter = Submitter(store=store, clock=clock, events=events)
        audit = AuditLog(store=store, clock=clock, events=events)
        await submitter.start()
        await audit.start()
        app: FastAPI = build_app(
            store=store, submitter=submitter, audit=audit, config=config, clock=clock, is_open=False
        )
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
            bench = Bench(client, store, sql, proxy, await make_token(store))
            await bench.prepare()
            yield bench
        await submitter.stop()
        await audit.stop()


async def refuse(sql: Any, event: str, table: str) -> None:
    """From here on, PostgreSQL refuses such statements with a permanent error."""
    await sql.execute(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$"
    )
    await sql.execute(f"create trigger refuse before {event} on {table} for each statement execute function refuse()")


@pytest.mark.parametrize(
    "name", ["fair", "fair and unique", "fair and keyed", "batch", "batch with a unique key", "keyed batch"]
)
async def test_the_turn_by_fairness_key_is_stored_with_the_job(bench: Bench, name: str) -> None:
    await refuse(bench.sql, "update", RUNS)
    answer = await bench.send(CREATING[name])
    assert answer.status_code == 201, answer.text
    assert await bench.count(RUNS) == CREATING[name][5]
    assert await bench.recorded() == [(201, 1)]


@pytest.mark.parametrize("name", CREATING)
async def test_nothing_is_created_without_an_audit_entry(bench: Bench, name: str) -> None:
    table = CREATING[name][4]
    before = await bench.count(table)
    await refuse(bench.sql, "insert", "foliot.audit")
    answer = await bench.send(CREATING[name])
    assert answer.status_code == 500, answer.text
    assert await bench.count(table) == before
    await bench.sql.execute("drop trigger refuse on foliot.audit")
    again = await bench.send(CREATING[name])
    assert again.status_code == 201, again.text
    assert await bench.count(table) == before + CREATING[name][5]


@pytest.mark.parametrize("name", CREATING)
async def test_a_lost_answer_causes_neither_a_second_job_nor_a_second_entry(bench: Bench, name: str) -> None:
    table = CREATING[name][4]
    before = await bench.count(table)
    # Loses the answer to the commit of a transaction, or to a single statement.
    bench.proxy.swallow_answer_to("insert into foliot.audit" if name in ALONE else "commit")
    answer = await bench.send(CREATING[name])
    assert bench.proxy.swallowed.is_set()
    assert answer.status_code == 201, answer.text
    assert await bench.count(table) == before + CREATING[name][5]
    assert await bench.recorded() == [(201, 1)]


async def test_a_redrive_with_a_lost_answer_happens_once_and_is_shown(bench: Bench) -> None:
    made = (await bench.send(CREATING["workflow"])).json()
    step = UUID(made["steps"]["a"])
    assert await bench.store.runs.close_runs([step], RunState.CANCELLED, "test") == [step]
    bench.proxy.swallow_answer_to("commit")
    answer = await bench.send(("POST", f"/v1/workflows/{made['id']}/redrive", {}, {}, PARENTS, 0))
    assert bench.proxy.swallowed.is_set()
    assert (answer.status_code, answer.json()["state"]) == (201, "waiting"), answer.text
    assert await bench.sql.fetchval("select count(*) from foliot.runs where parent_id = $1", UUID(made["id"])) == 1
    assert await bench.recorded() == [(201, 1), (201, 1)]


async def test_an_entry_with_a_lost_answer_is_stored_once(bench: Bench) -> None:
    bench.proxy.swallow_answer_to("insert into foliot.audit")
    answer = await bench.send(("POST", "/v1/queues/mail/pause", {}, {}, RUNS, 0))
    assert bench.proxy.swallowed.is_set()
    assert answer.status_code == 200, answer.text
    assert await bench.recorded() == [(200, 1)]


async def test_a_repeated_entry_waits_for_the_insert_that_is_still_running(bench: Bench) -> None:
    """PostgreSQL may continue a statement after its connection is cut, and commit it after the repetition has begun."""
    entry = AuditEntry(
        id=new_id(), actor="a", actor_namespace=None, token_id=None, role=None, namespace="default", address=None,
        request_id="r", method="POST", path="/",
        action="x", target=None, status=200, code=None,
    )  # fmt: skip
    async with bench.sql.transaction():
        await bench.sql.execute(
            "insert into foliot.audit (id, at, actor, namespace, request_id, method, path, action, status)"
            " values ($1, clock_timestamp(), 'a', 'default', 'r', 'POST', '/', 'x', 200)",
            entry.id,
        )
        again = asyncio.create_task(bench.store.audit_log.insert_audit_again([entry]))
        await until(
            lambda: bench.sql.fetchval(
                "select count(*) from pg_locks where not granted and relation = 'foliot.audit'::regclass"
            )
        )
    await again
    assert await bench.recorded() == [(200, 1)]


async def test_without_a_server_a_fair_job_is_stored_or_refused_as_a_whole(
    database_url: str, store: Store, sql: Any
) -> None:
    await store.workers.announce_tasks(TASKS)
    await refuse(sql, "update", RUNS)
    client = DatabaseClient(database_url)
    try:
        made = [
            await asyncio.to_thread(client.create_job, FAIR),
            await asyncio.to_thread(client.create_job, FAIR | {"unique": {"key": "k"}}),
        ]
        many = await asyncio.to_thread(client.create_alike, Alike(FAIR, [{"n": number} for number in range(5)]))
    finally:
        await asyncio.to_thread(client.close)
    ids = {UUID(answer.document["id"]) for answer in made} | {UUID(run_id) for run_id, _ in many}
    assert {row[0] for row in await sql.fetch("select id from foliot.runs")} == ids
    assert len({row[0] for row in await sql.fetch("select rank / 3600000000 from foliot.runs")}) == 7, "a step apart"
