"""Runs never start after their `expires_at`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from foliot.events import EventBus
from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.scheduler.expirer import Expirer
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.job_requests import ONCE, TASKS, WORKER, count_runs, post_job, start_run
from tests.support.runs import claim_runs


@pytest.fixture
def clock(fake_clock: FakeClock) -> FakeClock:
    return fake_clock


async def test_an_expired_run_is_skipped_or_cancelled_and_never_starts(
    client: httpx.AsyncClient, store: Store, sql: Any, events: EventBus, fake_clock: FakeClock
) -> None:
    expirer = Expirer(store=store, clock=fake_clock, events=events)
    soon, later = (fake_clock.now() + timedelta(seconds=after) for after in (60, 7200))
    ready = (await post_job(client, expires_at=soon.isoformat(), **ONCE)).json()
    scheduled = (await post_job(client, expires_at=soon.isoformat(), delay_seconds=30, **ONCE)).json()
    patient = (await post_job(client, expires_at=later.isoformat(), **ONCE)).json()
    for state in ("held", "waiting"):
        made = (await post_job(client, expires_at=soon.isoformat(), name=state, **ONCE)).json()
        held_by = "limit" if state == "held" else None
        await sql.execute(
            "update foliot.runs set state = $2, held_by = $3 where id = $1", UUID(made["id"]), state, held_by
        )
    await fake_clock.advance(59)
    await expirer.run_once()
    assert await sql.fetchval("select count(*) from foliot.history") == 0
    await fake_clock.advance(1)
    # The expirer has not run yet, and still no worker gets the run.
    assert [str(claim.run_id) for claim in await claim_runs(store, WORKER, {"default": 10}, TASKS)] == [patient["id"]]
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
    assert await count_runs(sql) == 1


async def test_a_run_that_started_in_time_is_retried_after_its_expiry(
    client: httpx.AsyncClient, store: Store, sql: Any, events: EventBus, fake_clock: FakeClock
) -> None:
    soon = fake_clock.now() + timedelta(seconds=60)
    await post_job(client, expires_at=soon.isoformat(), **ONCE)
    claim = await start_run(store)
    await fake_clock.advance(61)
    await store.outcomes.retry_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error")])
    await Expirer(store=store, clock=fake_clock, events=events).run_once()
    assert await sql.fetchval("select state from foliot.runs") == "scheduled"
    assert await store.due_runs.promote_due_runs(1) == ["default"]
    assert (await start_run(store)).attempt == 2


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
async def test_an_invalid_expiry_is_refused_with_its_field(
    client: httpx.AsyncClient, field: str, fields: dict[str, Any]
) -> None:
    answer = await post_job(client, **ONCE, **fields)
    assert (answer.status_code, answer.json()["field"]) == (422, field)
