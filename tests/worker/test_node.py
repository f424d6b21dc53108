from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import msgspec
import pytest

import foliot
from foliot.events import Event, EventBus, WorkerExpired
from foliot.model.ids import new_id
from foliot.model.namespace import Namespace
from foliot.model.states import RunState
from foliot.scheduler.promoter import Promoter
from foliot.scheduler.reaper import Reaper
from foliot.store.store import Store, open_store
from foliot.worker.executors import python
from tests.support.proxy import proxy_to
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.workers import QUICK, ended, submit, worker_node

ONCE = '{"retries": 0}'


async def test_async_and_sync_functions_get_the_payload_as_arguments(store: Store) -> None:
    app = foliot.App()

    @app.task
    async def add(a: int, b: int) -> dict[str, Any]:
        return {"sum": a + b, "thread": threading.current_thread() is threading.main_thread()}

    @app.task
    def multiply(a: int, b: int) -> dict[str, Any]:
        return {"product": a * b, "thread": threading.current_thread() is threading.main_thread()}

    async with worker_node(store, app):
        first = await submit(store, "add", payload='{"a": 2, "b": 3}')
        second = await submit(store, "multiply", payload='{"a": 2, "b": 3}')
        assert (await ended(store, first)).result == {"sum": 5, "thread": True}
        assert (await ended(store, second)).result == {"product": 6, "thread": False}


async def test_a_blocking_sync_function_stops_no_other_run(store: Store) -> None:
    app = foliot.App()
    release = threading.Event()

    @app.task
    def block() -> None:
        release.wait(10)

    @app.task
    async def quick() -> str:
        return "done"

    async with worker_node(store, app):
        blocked = await submit(store, "block")
        assert (await ended(store, await submit(store, "quick"))).result == "done"
        release.set()
        assert (await ended(store, blocked)).state is RunState.SUCCEEDED


@pytest.mark.parametrize("payload", ['{"wrong": 1}', None])
async def test_an_exception_fails_the_run_with_its_kind_message_and_traceback(
    store: Store, payload: str | None
) -> None:
    app = foliot.App()

    @app.task
    async def explode(**_: int) -> None:
        raise ValueError("no\0good \ud800")

    @app.task
    async def strict(needed: int) -> None: ...

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "explode", options=ONCE))
        assert (view.state, view.reason) == (RunState.FAILED, "error")
        assert (view.error["kind"], view.error["message"]) == ("ValueError", "no\\x00good \\ud800")
        assert "raise ValueError" in view.error["traceback"]
        view = await ended(store, await submit(store, "strict", options=ONCE, payload=payload))
        assert view.error["kind"] == "Invalid"
        assert view.error["message"].startswith("payload.wrong" if payload else "payload.needed: is required")


@pytest.mark.parametrize("kind", ["async", "plain", "durable"])
async def test_a_traceback_shows_the_code_of_the_user_only(store: Store, kind: str) -> None:
    app = foliot.App()

    async def inner() -> None:
        raise ValueError("no good")

    async def on_the_loop() -> None:
        await inner()

    def in_a_thread() -> None:
        raise ValueError("no good")

    async def durable(ctx: foliot.Context) -> None:
        await ctx.step("one", inner)

    function: Any = {"async": on_the_loop, "plain": in_a_thread, "durable": durable}[kind]
    app.task(name="explode")(function)
    async with worker_node(store, app):
        view = await ended(store, await submit(store, "explode", options=ONCE))
    files = [line for line in view.error["traceback"].splitlines() if line.startswith("  File ")]
    assert len(files) == (1 if kind == "plain" else 2)
    assert all(__file__ in line for line in files)


async def test_a_failing_run_uses_all_its_retries(store: Store, events: EventBus, sql: Any) -> None:
    app = foliot.App()
    attempts: list[float] = []

    @app.task(retries=2, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
    async def flaky() -> None:
        attempts.append(time.monotonic())
        raise RuntimeError(f"attempt {len(attempts)}")

    promoter = Promoter(store=store, clock=store.database.clock, events=events)
    await promoter.start()
    async with worker_node(store, app):
        view = await ended(store, await submit(store, "flaky"))
    await promoter.stop()
    assert (view.state, view.attempt, len(attempts)) == (RunState.FAILED, 3, 3)
    assert view.error["message"] == "attempt 3"
    earlier = await sql.fetch("select attempt, outcome, error->>'message' from foliot.attempts order by attempt")
    assert [tuple(row) for row in earlier] == [(1, "error", "attempt 1"), (2, "error", "attempt 2")]


async def test_a_run_that_times_out_is_stopped_with_that_reason(store: Store) -> None:
    app = foliot.App()
    stopped = asyncio.Event()

    @app.task(retries=0, timeout=0.05)
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "slow"))
    assert (view.state, view.reason, view.error["kind"]) == (RunState.FAILED, "timeout", "Timeout")
    assert stopped.is_set()


async def test_a_task_that_cancels_itself_fails(store: Store) -> None:
    app = foliot.App()

    @app.task(retries=0)
    async def suicidal() -> None:
        raise asyncio.CancelledError

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "suicidal"))
    assert (view.state, view.error["kind"]) == (RunState.FAILED, "CancelledError")


async def test_no_more_runs_at_once_than_slots(store: Store) -> None:
    app = foliot.App()
    now, most = 0, 0

    @app.task
    async def count() -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1

    runs = [await submit(store, "count") for _ in range(20)]
    async with worker_node(store, app, slots=3):
        for run in runs:
            await ended(store, run)
    assert most == 3


async def test_stopping_waits_for_runs_and_releases_the_rest(store: Store) -> None:
    app = foliot.App()
    started = asyncio.Event()

    @app.task
    async def short() -> str:
        started.set()
        await asyncio.sleep(0.2)
        return "finished"

    @app.task
    async def endless() -> None:
        await asyncio.sleep(600)

    config = msgspec.structs.replace(QUICK, grace_seconds=2)
    async with worker_node(store, app, config=config):
        first, second = await submit(store, "short"), await submit(store, "endless")
        await started.wait()
        await until(lambda: _is_running(store, second.id))
    assert (await ended(store, first)).result == "finished"
    view = await store.runs.get_run(second.id)
    assert view is not None
    assert (view.state, view.attempt, view.worker_id) == (RunState.READY, 0, None)


async def test_worker_that_lost_its_lease_stops_its_runs_and_registers_again(
    store: Store, sql: Any, events: EventBus, seen: list[Event]
) -> None:
    app = foliot.App()
    attempts = 0

    @app.task
    async def twice() -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await asyncio.sleep(600)
        return attempts

    reaper = Reaper(store=store, config=QUICK, clock=store.database.clock, events=events)
    async with worker_node(store, app):
        run = await submit(store, "twice")
        await until(lambda: _is_running(store, run.id))
        with events.expect(WorkerExpired) as expired:
            await sql.execute("delete from foliot.workers")
            await reaper.run_once()
            await expired
        view = await ended(store, run)
    assert (view.result, view.attempt, view.lost) == (2, 2, 1)


async def test_runs_of_a_claim_with_a_lost_answer_are_run(database_url: str, events: EventBus, store: Store) -> None:
    app = foliot.App()

    @app.task
    async def task() -> str:
        return "done"

    run = await submit(store, "task")
    async with (
        proxy_to(database_url) as (proxy, url),
        open_store(url, config=QUICK, clock=store.database.clock, events=events, part="test") as lossy,
    ):
        proxy.swallow_answer_to("set state = 'running'")
        async with worker_node(lossy, app):
            view = await ended(store, run)
    assert proxy.swallowed.is_set()
    assert (view.state, view.attempt, view.lost) == (RunState.SUCCEEDED, 1, 0)


async def _is_running(store: Store, run_id: Any) -> bool:
    view = await store.runs.get_run(run_id)
    return view is not None and view.state is RunState.RUNNING


async def test_a_task_that_blocks_the_event_loop_does_not_cost_the_lease(store: Store, seen: list[Event]) -> None:
    app = foliot.App()

    @app.task
    async def block() -> str:
        time.sleep(7)
        return "done"

    # A lease that ends long before the test, with room for three late heartbeats.
    config = msgspec.structs.replace(QUICK, worker_ttl_seconds=5)
    async with worker_node(store, app, config=config):
        view = await ended(store, await submit(store, "block"))
    assert (view.state, view.result, view.attempt, view.lost) == (RunState.SUCCEEDED, "done", 1, 0)
    assert not [event for event in seen if isinstance(event, WorkerExpired)]


async def test_a_draining_worker_finishes_its_runs_and_claims_no_more(store: Store) -> None:
    app = foliot.App()
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def wait_for_it() -> str:
        started.set()
        await go_on.wait()
        return "done"

    async with worker_node(store, app) as node:
        first = await submit(store, "wait_for_it")
        await started.wait()
        assert await store.workers.drain_worker(node._identity.id)
        draining = asyncio.create_task(node.drained())
        await asyncio.wait_for(node.is_draining.wait(), PATIENCE_SECONDS)
        second = await submit(store, "wait_for_it")
        go_on.set()
        await asyncio.wait_for(draining, PATIENCE_SECONDS)
        assert (await ended(store, first)).result == "done"
    view = await store.runs.get_run(second.id)
    assert view is not None
    assert view.state is RunState.READY
    assert not await store.workers.drain_worker(new_id())


async def test_a_sync_function_that_outlives_its_attempt_keeps_its_slot(store: Store) -> None:
    app = foliot.App()
    release, started = threading.Event(), threading.Semaphore(0)

    @app.task(timeout=0.2, retries=0)
    def stubborn() -> None:
        started.release()
        release.wait(20)

    @app.task
    def quick() -> str:
        return "done"

    async with worker_node(store, app, slots=1) as node:
        timed_out = await ended(store, await submit(store, "stubborn"))
        assert timed_out.reason == "timeout"
        assert "keeps running and holds a worker slot until it returns" in timed_out.error["message"]
        node._heartbeater.wake()
        await until(lambda: left_running(store, 1))
        after = await submit(store, "quick")
        await asyncio.sleep(0.5)
        view = await store.runs.get_run(after.id)
        assert view is not None
        assert view.state is RunState.READY
        release.set()
        assert (await ended(store, after)).result == "done"
        node._heartbeater.wake()
        await until(lambda: left_running(store, 0))


async def left_running(store: Store, number: int) -> bool:
    (worker,) = await store.workers.list_workers(Namespace())
    return worker.left_running == number


async def test_a_sync_function_that_checks_ends_its_attempt_and_frees_its_slot(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python, "ASK_SECONDS", 20.0)
    app = foliot.App()

    @app.task(timeout=0.2, retries=0)
    def polite(ctx: foliot.Context) -> None:
        while not ctx.should_stop():
            time.sleep(0.01)
        raise ValueError("what a function says after its end is not heard")

    async with worker_node(store, app, slots=1) as node:
        view = await ended(store, await submit(store, "polite"))
        assert (view.reason, view.error) == ("timeout", {"kind": "Timeout", "message": "ran longer than its 0.2 s"})
        assert node._attempts.left_running == 0
        assert node._attempts.free_slots() == {"default": 1}
