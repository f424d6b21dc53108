"""Idempotency keys, unique keys, batches and expiry, over HTTP on real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.scheduler.expirer import Expirer
from foliot.scheduler.pruner import Pruner
from foliot.store.postgres import Transaction
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import claim_runs

WORKER = new_id()
TASKS = ["send_invoice", "simulate"]
ONCE: dict[str, Any] = {"task": "simulate", "payload": {"n": 1}}


async def post(client: httpx.AsyncClient, key: str | None = None, **fields: Any) -> httpx.Response:
    return await client.post("/v1/jobs", json=fields, headers={"Idempotency-Key": key} if key is not None else {})


async def count(sql: Any) -> int:
    found: int = await sql.fetchval("select count(*) from foliot.runs")
    return found


async def start(store: Store, queue: str = "default") -> Any:
    (claim,) = await claim_runs(store, WORKER, {queue: 1}, TASKS)
    return claim


async def finish(store: Store, claim: Any) -> None:
    assert await store.runs.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)]) == 1


class TestIdempotencyKeys:
    async def test_numbers_of_any_size_are_part_of_what_was_asked(self, client: httpx.AsyncClient) -> None:
        for number in (10**40, 10**40 + 1):
            answers = [await post(client, f"k{number}", task="simulate", payload={"n": number}) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [201, 200]
        assert (await post(client, f"k{10**40}", task="simulate", payload={"n": 10**40 + 1})).status_code == 409

    async def test_every_depth_of_payload_that_is_taken_can_be_repeated(self, client: httpx.AsyncClient) -> None:
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

    async def test_a_repeated_request_gets_the_same_answer_and_makes_no_second_job(
        self, client: httpx.AsyncClient, sql: Any
    ) -> None:
        first = await post(client, "order-7", **ONCE)
        assert (first.status_code, first.json()["created"]) == (201, True)
        assert first.headers["location"] == f"/v1/jobs/{first.json()['id']}"
        again = await post(client, "order-7", payload={"n": 1}, task="simulate")
        assert (again.status_code, again.json()) == (200, first.json() | {"created": False})
        assert list(again.json()) == list(first.json())
        in_body = await post(client, idempotency_key="order-7", **ONCE)
        assert in_body.json() == again.json()
        assert await count(sql) == 1

    async def test_also_when_the_job_has_ended_meanwhile(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        first = await post(client, "k", **ONCE)
        await finish(store, await start(store))
        assert (await post(client, "k", **ONCE)).json() == first.json() | {"created": False}
        assert await count(sql) == 0

    async def test_a_recurring_job_is_made_once_too(self, client: httpx.AsyncClient, sql: Any) -> None:
        fields = {"task": "simulate", "name": "nightly", "cron": "0 3 * * *"}
        first, again = await post(client, "k", **fields), await post(client, "k", **fields)
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json() | {"created": False}
        assert (await post(client, "another", **fields)).status_code == 409
        assert await sql.fetchval("select count(*) from foliot.jobs") == 1

    async def test_another_request_with_the_same_key_is_refused(self, client: httpx.AsyncClient, sql: Any) -> None:
        await post(client, "k", **ONCE)
        for other in (
            {"task": "simulate", "payload": {"n": 2}},
            {**ONCE, "priority": 1},
            {"task": "simulate", "every": "5m"},
        ):
            answer = await post(client, "k", **other)
            assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
            assert "'k' came with another request before" in answer.json()["detail"]
        assert (await client.post("/v1/jobs/batch", json=[ONCE], headers={"Idempotency-Key": "k"})).status_code == 409
        assert await count(sql) == 1

    async def test_of_many_at_once_one_is_carried_out_and_all_are_answered(
        self, client: httpx.AsyncClient, sql: Any
    ) -> None:
        answers = await asyncio.gather(*(post(client, f"k{n % 5}", **ONCE) for n in range(60)))
        assert Counter(answer.status_code for answer in answers) == {201: 5, 200: 55}
        assert len({answer.json()["id"] for answer in answers}) == 5
        assert await count(sql) == 5

    async def test_a_refused_request_leaves_its_key_free(self, client: httpx.AsyncClient, sql: Any) -> None:
        assert (await post(client, "k", task="simulat")).status_code == 422
        await post(client, unique={"key": "u"}, **ONCE)
        assert (await post(client, "k", unique={"key": "u", "on_conflict": "reject"}, **ONCE)).status_code == 409
        assert (await post(client, "k", **ONCE)).status_code == 201
        assert await count(sql) == 2

    @pytest.mark.parametrize("key", ["", " k", "k ", "x" * 256, "\u00e9", "a\nb"])
    async def test_a_key_that_no_header_can_carry_is_refused(self, client: httpx.AsyncClient, key: str) -> None:
        answer = await post(client, idempotency_key=key, **ONCE)
        assert (answer.status_code, answer.json()["field"]) == (422, "idempotency_key")

    async def test_two_different_keys_are_one_too_many(self, client: httpx.AsyncClient) -> None:
        answer = await post(client, "a", idempotency_key="b", **ONCE)
        assert (answer.status_code, answer.json()["field"]) == (422, "idempotency_key")

    async def test_a_plain_job_leaves_no_key(self, client: httpx.AsyncClient, sql: Any) -> None:
        await post(client, **ONCE)
        assert await sql.fetchval("select count(*) from foliot.idempotency") == 0

    async def test_an_answer_of_the_commit_that_got_lost_makes_no_second_job_and_is_no_repetition(
        self, client: httpx.AsyncClient, store: Store, sql: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        transaction = store.database.transaction
        lost: list[bool] = []

        def losing(**given: Any) -> Any:
            return Losing(transaction(**given), lost)

        monkeypatch.setattr(store.database, "transaction", losing)
        for number, fields in enumerate([ONCE, ONCE | {"unique": {"key": "u"}}]):
            lost.clear()
            answer = await post(client, f"k{number}", **fields)
            assert (answer.status_code, answer.json()["created"], lost) == (201, True, [True])
        lost.clear()
        answer = await post(client, unique={"key": "v"}, **ONCE)
        assert (answer.status_code, answer.json()["created"], lost) == (201, True, [True])
        assert await count(sql) == 3


class Losing:
    """A transaction that commits, and whose connection breaks before it says so; the first time only."""

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


class TestTheLifeOfAKey:
    @pytest.fixture
    def clock(self, fake_clock: FakeClock) -> FakeClock:
        return fake_clock

    @pytest.fixture
    def config(self) -> Config:
        return Config(idempotency_hours=2)

    async def test_it_is_kept_as_long_as_configured_and_then_pruned(
        self, client: httpx.AsyncClient, store: Store, sql: Any, events: EventBus, fake_clock: FakeClock
    ) -> None:
        first = await post(client, "k", **ONCE)
        await fake_clock.advance(2 * 3600 - 1)
        await Pruner(store=store, clock=fake_clock, events=events).run_once()
        assert (await post(client, "k", **ONCE)).json()["id"] == first.json()["id"]
        await fake_clock.advance(1)
        second = await post(client, "k", task="simulate")
        assert (second.status_code, second.json()["created"]) == (201, True)
        await fake_clock.advance(2 * 3600)
        await Pruner(store=store, clock=fake_clock, events=events).run_once()
        assert await sql.fetchval("select count(*) from foliot.idempotency") == 0

    async def test_a_run_that_was_not_started_in_time_is_skipped_or_cancelled_and_never_started(
        self, client: httpx.AsyncClient, store: Store, sql: Any, events: EventBus, fake_clock: FakeClock
    ) -> None:
        expirer = Expirer(store=store, clock=fake_clock, events=events)
        soon, later = (fake_clock.now() + timedelta(seconds=after) for after in (60, 7200))
        ready = (await post(client, expires_at=soon.isoformat(), **ONCE)).json()
        scheduled = (await post(client, expires_at=soon.isoformat(), delay_seconds=30, **ONCE)).json()
        patient = (await post(client, expires_at=later.isoformat(), **ONCE)).json()
        for state in ("held", "waiting"):
            made = (await post(client, expires_at=soon.isoformat(), name=state, **ONCE)).json()
            held_by = "limit" if state == "held" else None
            await sql.execute(
                "update foliot.runs set state = $2, held_by = $3 where id = $1", UUID(made["id"]), state, held_by
            )
        await fake_clock.advance(59)
        await expirer.run_once()
        assert await sql.fetchval("select count(*) from foliot.history") == 0
        await fake_clock.advance(1)
        # Nobody has swept up yet, and still no worker takes it.
        assert [str(claim.run_id) for claim in await claim_runs(store, WORKER, {"default": 10}, TASKS)] == [
            patient["id"]
        ]
        await expirer.run_once()
        ended = {
            str(row[0]): (row[1], row[2], row[3])
            for row in await sql.fetch("select id, state, reason, name from foliot.history")
        }
        assert ended[ready["id"]] == ("skipped", "expired", None)
        assert ended[scheduled["id"]] == ("cancelled", "expired", None)
        assert sorted(found for found in ended.values() if found[2]) == [
            ("cancelled", "expired", "held"),
            ("skipped", "expired", "waiting"),
        ]
        assert await count(sql) == 1

    async def test_a_run_that_had_started_in_time_is_retried_after_it(
        self, client: httpx.AsyncClient, store: Store, sql: Any, events: EventBus, fake_clock: FakeClock
    ) -> None:
        soon = fake_clock.now() + timedelta(seconds=60)
        await post(client, expires_at=soon.isoformat(), **ONCE)
        claim = await start(store)
        await fake_clock.advance(61)
        await store.runs.retry_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error")])
        await Expirer(store=store, clock=fake_clock, events=events).run_once()
        assert await sql.fetchval("select state from foliot.runs") == "scheduled"
        assert await store.runs.promote_due_runs(1) == ["default"]
        assert (await start(store)).attempt == 2


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("expires_at", {"expires_at": "2030-01-01T00:00:00"}),
        ("expires_at", {"expires_at": "2030-01-01T00:00:00Z", "schedule_time": "2030-01-02T00:00:00Z"}),
        ("expires_at", {"expires_at": "2200-01-01T00:00:00Z"}),
        ("expires_at", {"expires_at": "2030-01-01T00:00:00Z", "every": "5m"}),
        ("unique", {"unique": {"key": "k"}, "every": "5m"}),
        ("unique", {"unique": {}}),
        ("unique.key", {"unique": {"key": ""}}),
        ("unique.on_conflict", {"unique": {"key": "k", "on_conflict": "ignore"}}),
    ],
)
async def test_what_makes_no_sense_is_refused_by_its_field(
    client: httpx.AsyncClient, field: str, fields: dict[str, Any]
) -> None:
    answer = await post(client, **ONCE, **fields)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


class TestUniqueJobs:
    async def test_the_live_one_is_returned_until_it_has_ended(self, client: httpx.AsyncClient, store: Store) -> None:
        fields = {**ONCE, "unique": {"key": "report"}}
        first = await post(client, **fields)
        assert (first.status_code, first.json()["created"]) == (201, True)
        again = await post(client, **fields | {"priority": 9})
        assert (again.status_code, again.json()) == (200, first.json() | {"created": False})
        claim = await start(store)
        running = await post(client, **fields)
        assert (running.status_code, running.json()["id"], running.json()["status"]) == (
            200,
            first.json()["id"],
            "running",
        )
        await finish(store, claim)
        third = await post(client, **fields)
        assert (third.status_code, third.json()["created"]) == (201, True)
        assert third.json()["id"] != first.json()["id"]

    async def test_another_one_is_refused_with_the_name_of_the_first(self, client: httpx.AsyncClient) -> None:
        fields = {**ONCE, "unique": {"key": "report", "on_conflict": "reject"}}
        first = await post(client, **fields)
        assert first.status_code == 201
        refused = await post(client, **fields)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert first.json()["id"] in refused.json()["detail"]

    async def test_what_has_not_started_is_replaced_and_keeps_its_id(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        unique = {"key": "report", "on_conflict": "replace"}
        first = (await post(client, **ONCE, unique=unique)).json()
        later = await post(
            client, task="simulate", payload={"n": 2}, priority=3, delay_seconds=3600, retries=7, unique=unique
        )
        assert (later.status_code, later.json()["created"], later.json()["id"]) == (200, False, first["id"])
        assert (later.json()["status"], later.json()["priority"]) == ("scheduled", 3)
        assert await claim_runs(store, WORKER, {"default": 1}, TASKS) == []
        now = (await post(client, task="simulate", payload={"n": 3}, unique=unique)).json()
        assert (now["status"], now["id"]) == ("pending", first["id"])
        claim = await start(store)
        assert (str(claim.run_id), claim.payload, claim.options) == (first["id"], '{"n": 3}', None)
        started = (await post(client, task="simulate", payload={"n": 4}, unique=unique)).json()
        assert (started["id"], started["status"], started["created"]) == (first["id"], "running", False)
        assert await sql.fetchval("select payload from foliot.runs") == '{"n": 3}'
        # A retry has started before.
        await store.runs.retry_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error", 60)])
        await post(client, task="simulate", payload={"n": 5}, unique=unique)
        assert await sql.fetchval("select payload from foliot.runs") == '{"n": 3}'
        assert await count(sql) == 1

    async def test_a_replaced_run_has_the_state_that_its_new_definition_calls_for(
        self, client: httpx.AsyncClient, sql: Any
    ) -> None:
        unique = {"key": "report", "on_conflict": "replace"}
        limited = {"concurrency": {"key": "k", "limit": 1}}
        for fields, state, held_by in (
            (limited, "held", "limit"), ({}, "ready", None), (limited, "held", "limit"), ({"delay_seconds": 60}, "scheduled", None),
            (limited | {"delay_seconds": 60}, "scheduled", None),
            ({"rate": {"key": "k", "limit": 1, "period_seconds": 1}}, "held", "limit"),
        ):  # fmt: skip
            await post(client, **ONCE, unique=unique, **fields)
            assert tuple(await sql.fetchrow("select state, held_by from foliot.runs")) == (state, held_by)

    async def test_a_replaced_run_waits_for_its_own_signal(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        """Nobody has approved of what it is now, whatever was approved before."""
        unique = {"key": "report", "on_conflict": "replace"}
        made = (await post(client, **ONCE, unique=unique, signal={})).json()
        for is_signalled in (False, True):
            if is_signalled:
                assert (
                    await client.post(f"/v1/runs/{made['id']}/signal", json={"payload": {"by": "ann"}})
                ).status_code == 200
                assert await sql.fetchval("select state from foliot.runs") == "ready"
            await post(client, task="simulate", payload={"n": 2}, unique=unique, signal={})
            assert tuple(await sql.fetchrow("select state, held_by, signal from foliot.runs")) == (
                "held",
                "signal",
                None,
            )
            assert await claim_runs(store, WORKER, {"default": 1}, TASKS) == []
        assert await store.workflows.time_out_signals(10) == []

    async def test_the_key_and_the_expiry_are_shown_while_they_hold(
        self, client: httpx.AsyncClient, store: Store
    ) -> None:
        expires_at = "2190-01-01T00:00:00Z"
        made = (await post(client, **ONCE, unique={"key": "report"}, expires_at=expires_at)).json()
        for path in (f"/v1/jobs/{made['id']}", f"/v1/runs/{made['id']}"):
            shown = (await client.get(path)).json()
            assert (shown["unique_key"], shown["expires_at"]) == ("report", expires_at)
        await finish(store, await start(store))
        shown = (await client.get(f"/v1/runs/{made['id']}")).json()
        assert (shown["unique_key"], shown["expires_at"]) == (None, None)

    @pytest.mark.parametrize("on_conflict", ["return_existing", "replace", "reject"])
    async def test_of_many_at_once_one_is_made(self, client: httpx.AsyncClient, sql: Any, on_conflict: str) -> None:
        fields = {**ONCE, "unique": {"key": "report", "on_conflict": on_conflict}}
        answers = await asyncio.gather(*(post(client, **fields) for _ in range(40)))
        assert Counter(answer.status_code for answer in answers) == {
            201: 1,
            409 if on_conflict == "reject" else 200: 39,
        }
        assert await count(sql) == 1

    async def test_there_is_never_more_than_one_while_they_come_run_and_go(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        made: list[str] = []
        is_over = asyncio.Event()

        async def submit() -> None:
            for _ in range(40):
                answer = await post(client, **ONCE, unique={"key": "report"})
                assert answer.status_code in (200, 201), answer.text
                if answer.status_code == 201:
                    made.append(answer.json()["id"])

        async def work() -> int:
            ended = 0
            while not is_over.is_set():
                claims = await claim_runs(store, WORKER, {"default": 5}, TASKS)
                assert len(claims) <= 1
                for claim in claims:
                    await finish(store, claim)
                    ended += 1
            return ended

        working = asyncio.create_task(work())
        await asyncio.gather(*(submit() for _ in range(4)))
        is_over.set()
        ended = await working
        assert len(made) > 1
        assert len(made) == len(set(made)) == ended + await count(sql)


class TestBatches:
    async def test_all_are_stored_in_order_and_answered_in_order(
        self, client: httpx.AsyncClient, store: Store, sql: Any
    ) -> None:
        jobs = [{"task": "simulate", "payload": {"n": n}} for n in range(1, 10_001)]
        answer = await client.post("/v1/jobs/batch", json={"jobs": jobs}, timeout=30)
        assert (answer.status_code, answer.json()["created"], len(answer.json()["items"])) == (201, True, 10_000)
        assert await count(sql) == 10_000
        claims = await claim_runs(store, WORKER, {"default": 3}, TASKS)
        assert {str(claim.run_id) for claim in claims} == {item["id"] for item in answer.json()["items"][:3]}
        assert {claim.payload for claim in claims} == {'{"n": 1}', '{"n": 2}', '{"n": 3}'}

    @pytest.mark.parametrize(
        ("bad", "field"),
        [
            ({"task": "simulate", "priority": "high"}, "priority"),
            ({"task": "simulate", "delay_seconds": 1, "schedule_time": "2030-01-01T00:00:00Z"}, "schedule_time"),
            ({"task": "simulat"}, "task"),
            ({"task": "simulate", "every": "5m"}, "cron"),
            ({"task": "simulate", "idempotency_key": "k"}, "idempotency_key"),
            ({"task": "simulate", "oops": 1}, "oops"),
        ],
    )
    @pytest.mark.parametrize("is_bare", [True, False])
    async def test_a_bad_item_names_its_index_and_nothing_is_stored(
        self, client: httpx.AsyncClient, sql: Any, bad: dict[str, Any], field: str, is_bare: bool
    ) -> None:
        jobs = [ONCE, ONCE, bad, ONCE]
        answer = await client.post("/v1/jobs/batch", json=jobs if is_bare else {"jobs": jobs})
        place = "[2]" if is_bare else "jobs[2]"
        assert (answer.status_code, answer.json()["field"]) == (422, f"{place}.{field}"), answer.text
        assert answer.json()["detail"].startswith(f"{place}.{field}: ")
        assert await count(sql) == 0

    @pytest.mark.parametrize("number", [0, 10_001])
    async def test_none_and_too_many_are_refused(self, client: httpx.AsyncClient, number: int) -> None:
        answer = await client.post("/v1/jobs/batch", json={"jobs": [{"task": "simulate"}] * number})
        assert (answer.status_code, answer.json()["field"]) == (422, "jobs")

    async def test_unique_keys_hold_inside_it_and_beside_it(self, client: httpx.AsyncClient, sql: Any) -> None:
        beside = (await post(client, **ONCE, unique={"key": "a"})).json()
        jobs = [ONCE | {"unique": {"key": key}} for key in ("a", "b", "b")]
        items = (await client.post("/v1/jobs/batch", json=jobs)).json()["items"]
        assert [item["created"] for item in items] == [False, True, False]
        assert items[0]["id"] == beside["id"]
        assert items[1]["id"] == items[2]["id"]
        refusing = [ONCE, ONCE | {"unique": {"key": "a", "on_conflict": "reject"}}]
        assert (await client.post("/v1/jobs/batch", json=refusing)).status_code == 409
        assert await count(sql) == 2

    async def test_a_repeated_batch_gets_the_same_answer(self, client: httpx.AsyncClient, sql: Any) -> None:
        first, again = [
            await client.post("/v1/jobs/batch", json=[ONCE, ONCE], headers={"Idempotency-Key": "k"}) for _ in range(2)
        ]
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json() | {"created": False}
        assert await count(sql) == 2


async def test_what_is_replaced_while_its_limit_admits_it_waits_for_its_signal(
    client: httpx.AsyncClient, store: Store, sql: Any
) -> None:
    unique = {"key": "report", "on_conflict": "replace"}
    made = (await post(client, **ONCE, unique=unique, concurrency={"key": "k", "limit": 1})).json()
    new = NewRun(
        UUID(made["id"]), "simulate", "default", options='{"signal": {}}', unique_key="report", on_conflict="replace"
    )
    async with store.database.transaction() as session:
        assert await store.submissions.replace_run(Transaction(session, is_repetition=False), new)
        assert (await store.gates.admit_runs()).queues == [], "nobody waits for a transaction that is left open"
    assert (await store.gates.admit_runs()).queues == []
    assert tuple(await sql.fetchrow("select state, held_by from foliot.runs")) == ("held", "signal")
