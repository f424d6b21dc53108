"""Unique keys of jobs: at most one live run for each, returned, refused or replaced."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.model.outcome import Outcome
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from tests.support.job_requests import ONCE, TASKS, WORKER, count_runs, finish_run, post_job, start_run
from tests.support.runs import claim_runs


async def test_the_live_run_is_returned_until_it_has_ended(client: httpx.AsyncClient, store: Store) -> None:
    fields = {**ONCE, "unique": {"key": "report"}}
    first = await post_job(client, **fields)
    assert (first.status_code, first.json()["created"]) == (201, True)
    again = await post_job(client, **fields | {"priority": 9})
    assert (again.status_code, again.json()) == (200, first.json() | {"created": False})
    claim = await start_run(store)
    running = await post_job(client, **fields)
    assert (running.status_code, running.json()["id"], running.json()["status"]) == (
        200,
        first.json()["id"],
        "running",
    )
    await finish_run(store, claim)
    third = await post_job(client, **fields)
    assert (third.status_code, third.json()["created"]) == (201, True)
    assert third.json()["id"] != first.json()["id"]


async def test_a_second_job_is_refused_with_the_id_of_the_first(client: httpx.AsyncClient) -> None:
    fields = {**ONCE, "unique": {"key": "report", "on_conflict": "reject"}}
    first = await post_job(client, **fields)
    assert first.status_code == 201
    refused = await post_job(client, **fields)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert first.json()["id"] in refused.json()["detail"]


async def test_a_run_that_has_not_started_is_replaced_and_keeps_its_id(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    unique = {"key": "report", "on_conflict": "replace"}
    first = (await post_job(client, **ONCE, unique=unique)).json()
    later = await post_job(
        client, task="simulate", payload={"n": 2}, priority=3, delay_seconds=3600, retries=7, unique=unique
    )
    assert (later.status_code, later.json()["created"], later.json()["id"]) == (200, False, first["id"])
    assert (later.json()["status"], later.json()["priority"]) == ("scheduled", 3)
    assert await claim_runs(store, WORKER, {"default": 1}, TASKS) == []
    now = (await post_job(client, task="simulate", payload={"n": 3}, unique=unique)).json()
    assert (now["status"], now["id"]) == ("pending", first["id"])
    claim = await start_run(store)
    assert (str(claim.run_id), claim.payload, claim.options) == (first["id"], '{"n": 3}', None)
    started = (await post_job(client, task="simulate", payload={"n": 4}, unique=unique)).json()
    assert (started["id"], started["status"], started["created"]) == (first["id"], "running", False)
    assert await sql.fetchval("select payload from foliot.runs") == '{"n": 3}'
    # A run that waits for a retry has already started.
    await store.outcomes.retry_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error", 60)])
    await post_job(client, task="simulate", payload={"n": 5}, unique=unique)
    assert await sql.fetchval("select payload from foliot.runs") == '{"n": 3}'
    assert await count_runs(sql) == 1


async def test_a_replaced_run_has_the_state_that_its_new_definition_calls_for(
    client: httpx.AsyncClient, sql: Any
) -> None:
    unique = {"key": "report", "on_conflict": "replace"}
    limited = {"concurrency": {"key": "k", "limit": 1}}
    for fields, state, held_by in (
        (limited, "held", "limit"), ({}, "ready", None), (limited, "held", "limit"), ({"delay_seconds": 60},
            "scheduled", None),
        (limited | {"delay_seconds": 60}, "scheduled", None),
        ({"rate": {"key": "k", "limit": 1, "period_seconds": 1}}, "held", "limit"),
    ):  # fmt: skip
        await post_job(client, **ONCE, unique=unique, **fields)
        assert tuple(await sql.fetchrow("select state, held_by from foliot.runs")) == (state, held_by)


async def test_a_replaced_run_waits_for_its_own_signal(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    """Earlier approvals do not count for the new definition."""
    unique = {"key": "report", "on_conflict": "replace"}
    made = (await post_job(client, **ONCE, unique=unique, signal={})).json()
    for is_signalled in (False, True):
        if is_signalled:
            assert (
                await client.post(f"/v1/runs/{made['id']}/signal", json={"payload": {"by": "ann"}})
            ).status_code == 200
            assert await sql.fetchval("select state from foliot.runs") == "ready"
        await post_job(client, task="simulate", payload={"n": 2}, unique=unique, signal={})
        assert tuple(await sql.fetchrow("select state, held_by, signal from foliot.runs")) == (
            "held",
            "signal",
            None,
        )
        assert await claim_runs(store, WORKER, {"default": 1}, TASKS) == []
    assert await store.signals.time_out_signals(10) == []


async def test_the_key_and_the_expiry_are_shown_while_they_hold(client: httpx.AsyncClient, store: Store) -> None:
    expires_at = "2190-01-01T00:00:00Z"
    made = (await post_job(client, **ONCE, unique={"key": "report"}, expires_at=expires_at)).json()
    for path in (f"/v1/jobs/{made['id']}", f"/v1/runs/{made['id']}"):
        shown = (await client.get(path)).json()
        assert (shown["unique_key"], shown["expires_at"]) == ("report", expires_at)
    await finish_run(store, await start_run(store))
    shown = (await client.get(f"/v1/runs/{made['id']}")).json()
    assert (shown["unique_key"], shown["expires_at"]) == (None, None)


@pytest.mark.parametrize("on_conflict", ["return_existing", "replace", "reject"])
async def test_one_of_many_concurrent_jobs_is_created(client: httpx.AsyncClient, sql: Any, on_conflict: str) -> None:
    fields = {**ONCE, "unique": {"key": "report", "on_conflict": on_conflict}}
    answers = await asyncio.gather(*(post_job(client, **fields) for _ in range(40)))
    assert Counter(answer.status_code for answer in answers) == {
        201: 1,
        409 if on_conflict == "reject" else 200: 39,
    }
    assert await count_runs(sql) == 1


async def test_at_most_one_run_is_live_under_load(client: httpx.AsyncClient, store: Store, sql: Any) -> None:
    made: list[str] = []
    is_over = asyncio.Event()

    async def submit() -> None:
        for _ in range(40):
            answer = await post_job(client, **ONCE, unique={"key": "report"})
            assert answer.status_code in (200, 201), answer.text
            if answer.status_code == 201:
                made.append(answer.json()["id"])

    async def work() -> int:
        ended = 0
        while not is_over.is_set():
            claims = await claim_runs(store, WORKER, {"default": 5}, TASKS)
            assert len(claims) <= 1
            for claim in claims:
                await finish_run(store, claim)
                ended += 1
        return ended

    working = asyncio.create_task(work())
    await asyncio.gather(*(submit() for _ in range(4)))
    is_over.set()
    ended = await working
    assert len(made) > 1
    assert len(made) == len(set(made)) == ended + await count_runs(sql)


async def test_a_run_replaced_while_its_limit_admits_it_waits_for_its_signal(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    unique = {"key": "report", "on_conflict": "replace"}
    made = (await post_job(client, **ONCE, unique=unique, concurrency={"key": "k", "limit": 1})).json()
    new = NewRun(
        UUID(made["id"]), "simulate", "default", options='{"signal": {}}', unique_key="report", on_conflict="replace"
    )
    async with store.database.transaction() as session:
        assert await store.unique_runs.replace_run(Transaction(session, is_repetition=False), new)
        assert (await store.limits.admit_runs()).queues == [], "nobody waits for a transaction that is left open"
    assert (await store.limits.admit_runs()).queues == []
    assert tuple(await sql.fetchrow("select state, held_by from foliot.runs")) == ("held", "signal")
