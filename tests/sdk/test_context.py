"""The context `ctx` of a task, in async and sync functions."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

import foliot
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node

ONCE = '{"retries": 0}'


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_task_knows_its_run_its_attempt_and_its_name(store: Store, is_async: bool) -> None:
    app = foliot.App()

    def known(ctx: foliot.Context) -> list[Any]:
        return [str(ctx.run_id), ctx.attempt, ctx.task, ctx.should_stop()]

    async def also_known(ctx: foliot.Context) -> list[Any]:
        return known(ctx)

    app.task(name="known")(also_known if is_async else known)
    async with worker_node(store, app):
        run = await submit(store, "known")
        assert (await ended(store, run)).result == [str(run.id), 1, "known", False]


@pytest.mark.parametrize("is_async", [True, False])
async def test_log_records_are_in_the_output_of_the_attempt(
    store: Store, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = foliot.App()

    def work(ctx: foliot.Context) -> None:
        ctx.logger.debug("too fine")
        ctx.logger.info("%d of %d", 1, 2)
        try:
            raise ValueError("odd \ud800")
        except ValueError:
            ctx.logger.exception("it went wrong")

    async def async_work(ctx: foliot.Context) -> None:
        work(ctx)

    app.task(name="work")(async_work if is_async else work)
    async with worker_node(store, app):
        view = await ended(store, await submit(store, "work"))
    assert view.output is not None
    lines = view.output.decode().splitlines()
    assert lines[0].endswith("Z INFO 1 of 2")
    assert lines[1].endswith("Z ERROR it went wrong")
    assert lines[-1] == "ValueError: odd \\ud800"
    assert "1 of 2" in [record.getMessage() for record in caplog.records]


async def test_each_attempt_has_a_logger_of_its_own(store: Store) -> None:
    app = foliot.App()
    both = asyncio.Barrier(2)

    @app.task
    async def work(word: str, ctx: foliot.Context) -> None:
        ctx.logger.info("begun by %s", word)
        await both.wait()
        ctx.logger.info("ended by %s", word)

    async with worker_node(store, app):
        runs = [await submit(store, "work", payload=f'{{"word": "{word}"}}') for word in ("one", "two")]
        outputs = [(await ended(store, run)).output or b"" for run in runs]
    assert [output.count(b"one") for output in outputs] == [2, 0]
    assert [output.count(b"two") for output in outputs] == [0, 2]
    assert "foliot.task.work" not in logging.root.manager.loggerDict


@pytest.mark.parametrize("why", ["timeout", "cancel"])
async def test_a_sync_function_sees_that_it_should_stop(store: Store, why: str) -> None:
    app = foliot.App()
    started, stopped = threading.Event(), threading.Event()

    @app.task(timeout=0.2 if why == "timeout" else 60)
    def work(ctx: foliot.Context) -> None:
        started.set()
        while not ctx.should_stop():
            threading.Event().wait(0.01)
        stopped.set()

    async with worker_node(store, app):
        run = await submit(store, "work", options=ONCE)
        await until(lambda: asyncio.to_thread(started.is_set))
        if why == "cancel":
            await store.cancellation.mark_cancelled([run.id], "enough", is_forced=False)
        view = await ended(store, run)
        await until(lambda: asyncio.to_thread(stopped.is_set))
    assert (view.state, view.reason) == (
        (RunState.FAILED, "timeout") if why == "timeout" else (RunState.CANCELLED, "cancelled")
    )


@pytest.mark.parametrize("why", ["timeout", "cancel"])
async def test_a_cancelled_async_function_sees_that_it_should_stop(store: Store, why: str) -> None:
    app = foliot.App()
    seen: list[bool] = []
    started = asyncio.Event()

    @app.task(timeout=0.2 if why == "timeout" else 60)
    async def work(ctx: foliot.Context) -> None:
        seen.append(ctx.should_stop())
        started.set()
        try:
            await asyncio.sleep(30)
        finally:
            seen.append(ctx.should_stop())

    async with worker_node(store, app):
        run = await submit(store, "work", options=ONCE)
        await started.wait()
        if why == "cancel":
            await store.cancellation.mark_cancelled([run.id], "enough", is_forced=False)
        await ended(store, run)
    assert seen == [False, True]
