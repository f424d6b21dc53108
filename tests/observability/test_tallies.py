"""Every created run is counted as scheduled, and every ended run as completed, also if the database itself creates or
ends it."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest

from foliot.clock import Clock
from foliot.errors import Invalid
from foliot.events import EventBus
from foliot.model.states import TERMINAL
from foliot.observability import tallies
from foliot.observability.tallies import Tallies
from foliot.sdk.app import App
from foliot.sdk.direct_submission import DirectSubmission, read_job
from foliot.store.store import Store
from tests.support.waiting import until
from tests.support.workers import worker_node

MADE = "select (select count(*) from foliot.runs) + (select count(*) from foliot.history)"
ENDED = "select state, count(*) from foliot.history group by state"


@pytest.fixture
def counting(store: Store, clock: Clock, events: EventBus) -> Tallies:
    return Tallies(store=store, clock=clock, events=events)


@pytest.fixture
def app() -> App:
    app = App()

    @app.task(retries=0)
    async def work(item: int = 0) -> None:
        if item < 0:
            raise ValueError("negative")

    return app


async def all_is_counted(store: Store, sql: Any, counting: Tallies) -> None:
    """Asserts that the counts equal the stored runs."""
    await counting.flush()
    sums = await store.metrics.sum_tallies()
    assert sums.get(tallies.SUBMITTED, 0) == await sql.fetchval(MADE)
    assert {state: sums.get(state, 0) for state in TERMINAL if sums.get(state)} == dict(await sql.fetch(ENDED))


async def run_through(store: Store, sql: Any, app: App, *jobs: dict[str, Any]) -> None:
    async with worker_node(store, app):
        submission = DirectSubmission(store=store, namespace="default")
        for job in jobs:
            await submission.store_all([await submission.accept(read_job(job))])
        await until(lambda: sql.fetchval("select not exists (select from foliot.runs)"))


async def test_items_of_a_map_are_counted(store: Store, sql: Any, app: App, counting: Tallies) -> None:
    over = {"range": {"stop": 25}, "max_concurrency": 4}
    await run_through(store, sql, app, {"task": "map", "payload": {"task": "work", "map": over}})
    assert await sql.fetchval(MADE) == 26
    await all_is_counted(store, sql, counting)


async def test_steps_of_a_workflow_are_counted_for_every_outcome(
    store: Store, sql: Any, app: App, counting: Tallies
) -> None:
    steps = [
        {"key": "a", "task": "work"},
        {"key": "b", "task": "work", "payload": {"item": -1}, "after": ["a"]},
        {"key": "c", "task": "work", "after": ["b"]},
        {"key": "d", "task": "work", "after": ["c"]},
        {"key": "e", "task": "work", "after": ["b"], "rule": "all_done"},
    ]
    for on_failure in ("continue", "fail_fast"):
        await run_through(store, sql, app, {"task": "workflow", "payload": {"steps": steps, "on_failure": on_failure}})
    assert await sql.fetchval(MADE) == 12
    await all_is_counted(store, sql, counting)


async def test_notifications_are_counted(store: Store, sql: Any, app: App, counting: Tallies) -> None:
    notice = {"url": "http://127.0.0.1:9/", "on": ["completed"]}
    async with worker_node(store, app):
        submission = DirectSubmission(store=store, namespace="default")
        await submission.store_all([await submission.accept(read_job({"task": "work", "notify": notice}))])
        await until(lambda: sql.fetchval("select exists (select from foliot.runs where task = 'http' and attempt > 0)"))
    await all_is_counted(store, sql, counting)


async def test_submissions_in_user_transactions_are_counted_at_the_commit(
    store: Store, sql: Any, counting: Tallies
) -> None:
    await store.workers.announce_tasks({"work": "default", "shell": "default"})
    await sql.fetchval("""select foliot.submit('{"task": "work"}')""")
    unique = """select foliot.submit('{"task": "work", "unique": {"key": "one"}}')"""
    assert await sql.fetchval(unique) == await sql.fetchval(unique)
    transaction = sql.transaction()
    await transaction.start()
    await sql.fetchval("""select foliot.submit('{"task": "work"}')""")
    await transaction.rollback()
    assert await sql.fetchval(MADE) == 2
    await all_is_counted(store, sql, counting)
    # They are added to the tallies once, together with the next counts.
    await store.metrics.add_tallies(1, {tallies.SUBMITTED: 1.0})
    assert await sql.fetchval("select count(*) from foliot.counted") == 0
    assert (await store.metrics.sum_tallies())[tallies.SUBMITTED] == 3


@pytest.mark.parametrize(
    "payload",
    ['{"sandbox": true, "command": "x"}', '{"comand": "x"}', "{}", '{"command": 1}', '{"command": "x", "argv": ["x"]}'],
)
async def test_the_sql_function_refuses_an_invalid_command(store: Store, sql: Any, payload: str) -> None:
    await store.workers.announce_tasks({"shell": "default"})
    with pytest.raises(asyncpg.InvalidParameterValueError, match=r"^payload"):
        await sql.fetchval("select foliot.submit($1::text::jsonb)", f'{{"task": "shell", "payload": {payload}}}')
    with pytest.raises(Invalid, match=r"^payload"):
        await DirectSubmission(store=store, namespace="default").accept(
            read_job({"task": "shell", "payload": json.loads(payload)})
        )
    await sql.fetchval("""select foliot.submit('{"task": "shell", "payload": {"command": "x", "sandbox": "none"}}')""")
