"""Outcomes are written once: finishes, retries and releases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.model.outcome import Outcome
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.new_runs import WORKER, claim, run


async def test_a_run_goes_from_insert_to_history(store: Store) -> None:
    given = run(name="hello", payload='{"a": 1}', options='{"retries": 2}', priority=5)
    stored = await store.run_inserts.insert_runs([given])
    assert stored[given.id].state is RunState.READY
    (claimed,) = await claim(store)
    assert (claimed.run_id, claimed.token, claimed.attempt, claimed.queue) == (given.id, 1, 1, "default")
    assert (
        await store.outcomes.finish_runs(
            WORKER, [Outcome(given.id, 1, RunState.SUCCEEDED, result='{"b": 2}', output=b"\0\xff")]
        )
        == 1
    )
    view = await store.runs.get_run(given.id)
    assert view is not None
    assert (view.state, view.name, view.payload, view.options) == (
        RunState.SUCCEEDED,
        "hello",
        {"a": 1},
        {"retries": 2},
    )
    assert (view.result, view.output, view.attempt, view.worker_id) == ({"b": 2}, b"\0\xff", 1, WORKER)
    assert view.started_at is not None
    assert view.finished_at is not None
    assert view.created_at <= view.due_at <= view.started_at <= view.finished_at


async def test_a_repeated_finish_writes_once_and_differs_from_a_stale_write(store: Store, sql: Any) -> None:
    given = [run(), run()]
    await store.run_inserts.insert_runs(given)
    outcomes = [Outcome(c.run_id, c.token, RunState.SUCCEEDED) for c in await claim(store)]
    assert await store.outcomes.finish_runs(WORKER, outcomes) == 2
    assert await store.outcomes.finish_runs(WORKER, outcomes) == 0
    assert await store.outcomes.count_written(WORKER, outcomes) == 2
    stale = [Outcome(outcomes[0].run_id, 99, RunState.SUCCEEDED)]
    assert await store.outcomes.count_written(WORKER, stale) == 0
    assert await sql.fetchval("select count(*) from foliot.history") == 2


async def test_a_retry_waits_and_keeps_its_attempt(database_url: str, store: Store, sql: Any) -> None:
    given = run()
    await store.run_inserts.insert_runs([given])
    await claim(store)
    error = '{"kind": "ValueError", "message": "no"}'
    outcome = Outcome(given.id, 1, RunState.SCHEDULED, "error", 60.0, error=error, output=b"text")
    assert await store.outcomes.retry_runs(WORKER, [outcome]) == 1
    view = await store.runs.get_run(given.id)
    assert view is not None
    assert (view.state, view.attempt, view.error["message"], view.output) == (RunState.SCHEDULED, 1, "no", b"text")
    assert timedelta(seconds=55) < view.due_at - datetime.now(UTC) <= timedelta(seconds=61)
    assert await store.due_runs.promote_due_runs(10) == []
    await sql.execute("update foliot.runs set due_at = now()")
    assert await store.due_runs.promote_due_runs(10) == ["default"]
    (again,) = await claim(store)
    assert (again.token, again.attempt) == (2, 2)


async def test_a_release_uses_up_the_token_but_no_attempt(store: Store) -> None:
    await store.run_inserts.insert_runs([run()])
    (first,) = await claim(store)
    assert await store.outcomes.release_runs(WORKER, [Outcome(first.run_id, first.token, RunState.READY)]) == 1
    (second,) = await claim(store)
    assert (second.token, second.attempt) == (2, 1)


@pytest.mark.parametrize("outcome", ["error", "snoozed"])
async def test_a_released_retry_still_counts_as_started(store: Store, sql: Any, outcome: str) -> None:
    await store.run_inserts.insert_runs([run(expires_at=datetime.now(UTC) + timedelta(minutes=1))])
    (first,) = await claim(store)
    await store.outcomes.retry_runs(WORKER, [Outcome(first.run_id, first.token, RunState.SCHEDULED, outcome, 0.0)])
    assert await store.due_runs.promote_due_runs(10) == ["default"]
    (second,) = await claim(store)
    await store.outcomes.release_runs(WORKER, [Outcome(second.run_id, second.token, RunState.READY)])
    await sql.execute("update foliot.runs set expires_at = now()")
    assert await store.expiry.expire_runs(10) == 0
    assert len(await claim(store)) == 1
