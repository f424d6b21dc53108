"""Cancelling running runs: the worker is notified at once, stops the run and reports it. Runs that finish first keep
their outcome."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import foliot
from foliot.config import Config
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store.hints import worker_topic
from foliot.store.store import Store
from tests.support.containment import gone, sleepers
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.workers import ended, submit, worker_node

# Heartbeats too rare to explain that a worker knows before the test times out.
PATIENT = Config(poll_seconds=0.05, worker_ttl_seconds=900, worker_beat_seconds=300, grace_seconds=5)
ONCE = '{"retries": 0}'


async def cancel(store: Store, run: NewRun, message: str = "enough", *, is_forced: bool = False) -> None:
    marked = await store.cancellation.mark_cancelled([run.id], message, is_forced=is_forced)
    closed = await store.cancellation.close_cancelled(10)
    store.hints.send(worker_topic(worker) for worker in {**marked, **closed}.values() if worker is not None)


async def is_running(store: Store, run: NewRun) -> bool:
    view = await store.runs.get_run(run.id)
    return view is not None and view.state is RunState.RUNNING


async def test_an_async_function_is_cancelled_at_its_await_and_not_retried(store: Store) -> None:
    app = foliot.App()
    started, heard = asyncio.Event(), asyncio.Event()

    @app.task
    async def wait_long() -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            heard.set()
            raise

    async with worker_node(store, app, config=PATIENT):
        run = await submit(store, "wait_long")
        await started.wait()
        await cancel(store, run)
        view = await ended(store, run)
    assert heard.is_set()
    assert (view.state, view.reason, view.attempt) == (RunState.CANCELLED, "cancelled", 1)
    assert view.error == {"kind": "Cancelled", "message": "enough"}


async def test_a_failure_during_a_cancel_counts_as_cancelled_and_a_success_stands(
    store: Store,
) -> None:
    app = foliot.App()
    started = asyncio.Semaphore(0)

    @app.task
    async def stubborn(fails: bool) -> str:
        started.release()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            if fails:
                raise ValueError("no") from None
        return "done all the same"

    async with worker_node(store, app, config=PATIENT):
        failing, succeeding = [
            await submit(store, "stubborn", payload=f'{{"fails": {word}}}') for word in ("true", "false")
        ]
        await started.acquire()
        await started.acquire()
        for run in (failing, succeeding):
            await cancel(store, run)
        failed, succeeded = [await ended(store, run) for run in (failing, succeeding)]
    assert (failed.state, failed.reason, failed.attempt) == (RunState.CANCELLED, "cancelled", 1)
    assert (succeeded.state, succeeded.result) == (RunState.SUCCEEDED, "done all the same")


async def test_a_command_and_its_children_are_stopped(store: Store, tmp_path: Path) -> None:
    # Found by a sleep of a unique length, because process ids belong to a namespace.
    begun, mark = tmp_path / "begun", f"300.{os.getpid()}"
    command = f"trap 'exit 0' TERM; sleep {mark} & echo begun > {begun}; wait"
    async with worker_node(store, foliot.App(), config=PATIENT):
        run = await submit(store, "shell", payload=f'{{"command": "{command}"}}', options=ONCE)
        await until(lambda: _is_written(begun))
        assert sleepers(mark)
        await cancel(store, run)
        assert (await ended(store, run)).state is RunState.CANCELLED
    assert gone(mark)


async def test_a_run_that_is_ended_by_force_has_ended_before_its_worker_knows(store: Store, sql: Any) -> None:
    app = foliot.App()
    release = threading.Event()

    @app.task
    def block() -> str:
        release.wait(2 * PATIENCE_SECONDS)
        return "too late"

    async with worker_node(store, app, config=PATIENT):
        run = await submit(store, "block")
        await until(lambda: is_running(store, run))
        await cancel(store, run, is_forced=True)
        view = await ended(store, run)
        assert (view.state, view.error["message"]) == (RunState.CANCELLED, "enough")
        release.set()
    assert await sql.fetch("select state, result from foliot.history") == [("cancelled", None)]


async def test_an_attempt_whose_run_was_given_to_another_is_stopped(store: Store, sql: Any) -> None:
    app = foliot.App()
    started, heard = asyncio.Event(), asyncio.Event()

    @app.task
    async def wait_long() -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            heard.set()
            raise

    config = Config(poll_seconds=0.05, worker_ttl_seconds=120, worker_beat_seconds=0.2, grace_seconds=5)
    async with worker_node(store, app, config=config):
        run = await submit(store, "wait_long")
        # A run counts as running from its claim, but its function starts a moment later.
        await started.wait()
        await sql.execute("update foliot.runs set token = token + 1, worker_id = gen_random_uuid()")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await heard.wait()
        assert await is_running(store, run)


async def _is_written(path: Path) -> bool:
    return path.exists() and path.read_text() == "begun\n"
