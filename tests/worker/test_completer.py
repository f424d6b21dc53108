"""Outcomes reach the database once, in batches, and count as held until then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import foliot
from foliot.errors import StoreUnavailable
from foliot.events import Event, EventBus, StaleWritesRefused
from foliot.model.ids import new_id
from foliot.model.states import RunState
from foliot.store.store import Store, open_store
from tests.support.proxy import proxy_to
from tests.support.waiting import until
from tests.support.worker_bench import NUMBER, Bench, lose_next_answer
from tests.support.workers import QUICK, ended, submit, worker_node


async def test_runs_whose_outcome_is_not_yet_written_are_not_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.insert(NUMBER)
    await bench.turn()
    # All runs have ended, and no outcome is stored. Then the answer to another claim is lost.
    await bench.insert(3)
    lose_next_answer(monkeypatch, bench.store.claims, "claim_runs")
    with pytest.raises(StoreUnavailable):
        await bench.turn()
    await bench.turn()
    assert sorted(bench.started.values()) == [1] * (NUMBER + 3)
    await bench.flush()
    assert len(bench.holdings) == await bench.running() == 0


async def test_runs_whose_outcome_is_being_written_are_not_started_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.insert(NUMBER)
    await bench.turn()
    finish_runs, is_sent = bench.store.outcomes.finish_runs, asyncio.Event()

    async def slow(*arguments: Any) -> int:
        await is_sent.wait()
        return await finish_runs(*arguments)

    monkeypatch.setattr(bench.store.outcomes, "finish_runs", slow)
    writing = asyncio.create_task(bench.completer.run_once())
    await bench.insert(3)
    lose_next_answer(monkeypatch, bench.store.claims, "claim_runs")
    with pytest.raises(StoreUnavailable):
        await bench.turn()
    for _ in range(3):
        await bench.turn()
    is_sent.set()
    await writing
    await bench.flush()
    assert sorted(bench.started.values()) == [1] * (NUMBER + 3)
    assert len(bench.holdings) == await bench.running() == 0


async def test_an_outcome_whose_write_failed_is_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.insert(2)
    await bench.turn()
    lose_next_answer(monkeypatch, bench.store.outcomes, "finish_runs")
    with pytest.raises(StoreUnavailable):
        await bench.completer.run_once()
    assert len(bench.holdings) == 2
    await bench.flush()
    assert len(bench.holdings) == 0
    assert sorted(bench.started.values()) == [1, 1]


async def test_a_zombie_can_not_write_over_a_newer_attempt(store: Store, sql: Any, events: EventBus) -> None:
    """A worker that has lost its lease without noticing finishes a run that another worker has."""
    app = foliot.App()
    let_go = asyncio.Event()

    @app.task
    async def linger() -> str:
        await let_go.wait()
        return "zombie"

    async with worker_node(store, app):
        run = await submit(store, "linger")
        await until(lambda: _is_running(store, run.id))
        await sql.execute(
            "insert into foliot.attempts (run_id, token, attempt, worker_id, started_at, finished_at, outcome) "
            "select id, token, attempt, worker_id, started_at, clock_timestamp(), 'lost' from foliot.runs"
        )
        await sql.execute("update foliot.runs set token = token + 1, worker_id = $1", new_id())
        with events.expect(StaleWritesRefused) as refused:
            let_go.set()
            assert (await refused).count == 1
    view = await store.runs.get_run(run.id)
    assert view is not None
    assert (view.state, view.result) == (RunState.RUNNING, None)
    lost, running = await store.run_lists.list_attempts(run.id)
    assert (lost.outcome, running.outcome, running.refused_at) == ("lost", "running", None)
    assert lost.finished_at is not None
    assert lost.refused_at is not None
    assert lost.refused_at >= lost.finished_at


async def test_an_outcome_with_a_lost_answer_is_not_taken_for_stale(
    database_url: str, events: EventBus, store: Store, seen: list[Event]
) -> None:
    app = foliot.App()

    @app.task
    async def task() -> str:
        return "done"

    async with (
        proxy_to(database_url) as (proxy, url),
        open_store(url, config=QUICK, clock=store.database.clock, events=events, part="test") as lossy,
        worker_node(lossy, app),
    ):
        proxy.swallow_answer_to("delete from foliot.runs")
        assert (await ended(store, await submit(store, "task"))).result == "done"
        await ended(store, await submit(store, "task"))
    assert proxy.swallowed.is_set()
    assert not [event for event in seen if isinstance(event, StaleWritesRefused)]


async def test_content_that_postgres_refuses_ends_the_run_and_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = foliot.App()

    @app.task
    async def good() -> str:
        return "good"

    @app.task(retries=0)
    async def bad() -> str:
        return "bad"

    # Our own encoder refuses such results, so this one is damaged afterwards.
    monkeypatch.setattr(
        "foliot.worker.executors.python.encode_storable",
        lambda result: b"{" if result == "bad" else f'"{result}"'.encode(),
    )
    runs = [await submit(store, name) for name in ("good", "bad", "good")]
    async with worker_node(store, app):
        views = [await ended(store, run) for run in runs]
    assert [view.state for view in views] == [RunState.SUCCEEDED, RunState.FAILED, RunState.SUCCEEDED]
    assert views[1].error["kind"] == "OutcomeNotStorable"


async def _is_running(store: Store, run_id: Any) -> bool:
    view = await store.runs.get_run(run_id)
    return view is not None and view.state is RunState.RUNNING
