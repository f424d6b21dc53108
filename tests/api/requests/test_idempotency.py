"""Idempotency keys: a repeated request gets the first answer and creates nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from foliot.config import Config
from foliot.events import EventBus
from foliot.scheduler.pruner import Pruner
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.job_requests import ONCE, count_runs, finish_run, post_job, start_run


class TestIdempotencyKeys:
    async def test_numbers_of_any_size_distinguish_requests(self, client: httpx.AsyncClient) -> None:
        for number in (10**40, 10**40 + 1):
            answers = [await post_job(client, f"k{number}", task="simulate", payload={"n": number}) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [201, 200]
        assert (await post_job(client, f"k{10**40}", task="simulate", payload={"n": 10**40 + 1})).status_code == 409

    async def test_a_request_with_a_payload_of_any_accepted_depth_can_be_repeated(
        self, client: httpx.AsyncClient
    ) -> None:
        taken = 0
        for depth in (1, 50, *range(90, 110), 500, 950):
            body = b'{"task": "simulate", "every": "5m", "payload": {"a": ' + b"[" * depth + b"]" * depth + b"}}"
            headers = {"Idempotency-Key": f"k{depth}", "Content-Type": "application/json"}
            first, again = [await client.post("/v1/jobs", content=body, headers=headers) for _ in range(2)]
            if first.status_code == 400:
                continue
            taken += 1
            assert (first.status_code, again.status_code) == (201, 200)
            assert again.content == first.content.replace(b'"created":true', b'"created":false')
        assert taken >= 2

    async def test_a_repeated_request_gets_the_same_answer_and_creates_no_second_job(
        self, client: httpx.AsyncClient, sql: Any
    ) -> None:
        first = await post_job(client, "order-7", **ONCE)
        assert (first.status_code, first.json()["created"]) == (201, True)
        assert first.headers["location"] == f"/v1/jobs/{first.json()['id']}"
        again = await post_job(client, "order-7", payload={"n": 1}, task="simulate")
        assert (again.status_code, again.json()) == (200, first.json() | {"created": False})
        assert list(again.json()) == list(first.json())
        in_body = await post_job(client, idempotency_key="order-7", **ONCE)
        assert in_body.json() == again.json()
        assert await count_runs(sql) == 1

    async def test_a_repeated_request_gets_the_same_answer_after_the_job_has_ended(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        first = await post_job(client, "k", **ONCE)
        await finish_run(store, await start_run(store))
        assert (await post_job(client, "k", **ONCE)).json() == first.json() | {"created": False}
        assert await count_runs(sql) == 0

    async def test_a_recurring_job_is_created_once(self, client: httpx.AsyncClient, sql: Any) -> None:
        fields = {"task": "simulate", "name": "nightly", "cron": "0 3 * * *"}
        first, again = await post_job(client, "k", **fields), await post_job(client, "k", **fields)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json() | {"created": False}
        assert (await post_job(client, "another", **fields)).status_code == 409
        assert await sql.fetchval("select count(*) from foliot.jobs") == 1

    async def test_another_request_with_the_same_key_is_refused(self, client: httpx.AsyncClient, sql: Any) -> None:
        await post_job(client, "k", **ONCE)
        for other in (
            {"task": "simulate", "payload": {"n": 2}},
            {**ONCE, "priority": 1},
            {"task": "simulate", "every": "5m"},
        ):
            answer = await post_job(client, "k", **other)
            assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
            assert "'k' belongs to another request" in answer.json()["detail"]
        assert (await client.post("/v1/jobs/batch", json=[ONCE], headers={"Idempotency-Key": "k"})).status_code == 409
        assert await count_runs(sql) == 1

    async def test_one_of_many_concurrent_requests_is_carried_out_and_all_are_answered(
        self, client: httpx.AsyncClient, sql: Any
    ) -> None:
        answers = await asyncio.gather(*(post_job(client, f"k{n % 5}", **ONCE) for n in range(60)))
        assert Counter(answer.status_code for answer in answers) == {201: 5, 200: 55}
        assert len({answer.json()["id"] for answer in answers}) == 5
        assert await count_runs(sql) == 5

    async def test_a_refused_request_leaves_its_key_free(self, client: httpx.AsyncClient, sql: Any) -> None:
        assert (await post_job(client, "k", task="simulat")).status_code == 422
        await post_job(client, unique={"key": "u"}, **ONCE)
        assert (await post_job(client, "k", unique={"key": "u", "on_conflict": "reject"}, **ONCE)).status_code == 409
        assert (await post_job(client, "k", **ONCE)).status_code == 201
        assert await count_runs(sql) == 2

    @pytest.mark.parametrize("key", ["", " k", "k ", "x" * 256, "\u00e9", "a\nb"])
    async def test_a_key_that_no_header_can_carry_is_refused(self, client: httpx.AsyncClient, key: str) -> None:
        answer = await post_job(client, idempotency_key=key, **ONCE)
        assert (answer.status_code, answer.json()["field"]) == (422, "idempotency_key")

    async def test_different_keys_in_header_and_body_are_refused(self, client: httpx.AsyncClient) -> None:
        answer = await post_job(client, "a", idempotency_key="b", **ONCE)
        assert (answer.status_code, answer.json()["field"]) == (422, "idempotency_key")

    async def test_a_plain_job_leaves_no_key(self, client: httpx.AsyncClient, sql: Any) -> None:
        await post_job(client, **ONCE)
        assert await sql.fetchval("select count(*) from foliot.idempotency") == 0

    async def test_a_lost_commit_answer_creates_no_second_job_and_counts_as_created(
        self, client: httpx.AsyncClient, store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        transaction = store.database.transaction
        lost: list[bool] = []

        def losing(**given: Any) -> Any:
            return Losing(transaction(**given), lost)

        monkeypatch.setattr(store.database, "transaction", losing)
        for number, fields in enumerate([ONCE, ONCE | {"unique": {"key": "u"}}]):
            lost.clear()
            answer = await post_job(client, f"k{number}", **fields)
            assert (answer.status_code, answer.json()["created"], lost) == (201, True, [True])
        lost.clear()
        answer = await post_job(client, unique={"key": "v"}, **ONCE)
        assert (answer.status_code, answer.json()["created"], lost) == (201, True, [True])
        assert await count_runs(sql) == 3


class Losing:
    """A transaction that commits and loses its connection before the confirmation arrives, the first time only."""

    def __init__(self, inner: Any, lost: list[bool]) -> None:
        self._inner = inner
        self._lost = lost

    async def __aenter__(self) -> Any:
        return await self._inner.__aenter__()

    async def __aexit__(self, *error: Any) -> Any:
        ended = await self._inner.__aexit__(*error)
        if not self._lost:
            self._lost.append(True)
            raise ConnectionResetError("the answer got lost")
        return ended


class TestKeyLifetime:
    @pytest.fixture
    def clock(self, fake_clock: FakeClock) -> FakeClock:
        return fake_clock

    @pytest.fixture
    def config(self) -> Config:
        return Config(idempotency_hours=2)

    async def test_a_key_is_kept_as_configured_and_then_pruned(
        self, client: httpx.AsyncClient, store: Store, sql: Any, events: EventBus, fake_clock: FakeClock
    ) -> None:
        first = await post_job(client, "k", **ONCE)
        await fake_clock.advance(2 * 3600 - 1)
        await Pruner(store=store, clock=fake_clock, events=events).run_once()
        assert (await post_job(client, "k", **ONCE)).json()["id"] == first.json()["id"]
        await fake_clock.advance(1)
        second = await post_job(client, "k", task="simulate")
        assert (second.status_code, second.json()["created"]) == (201, True)
        await fake_clock.advance(2 * 3600)
        await Pruner(store=store, clock=fake_clock, events=events).run_once()
        assert await sql.fetchval("select count(*) from foliot.idempotency") == 0
