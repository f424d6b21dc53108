"""Output and progress of a running attempt: stored live, bounded, deleted at the end, and free for attempts without
output."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import foliot
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import RunOptions
from foliot.model.states import RunState
from foliot.store.logs import LogPart, Logs, ProgressNote
from foliot.store.store import Store
from foliot.worker.attempts import Attempts
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity
from foliot.worker.live_output import LiveOutput
from foliot.worker.log_writer import LogWriter
from foliot.worker.running_attempt import RunningAttempt
from tests.support.runs import WORKER, claim, insert
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node


async def parts(sql: Any) -> list[tuple[int, bytes]]:
    return [(row[0], row[1]) for row in await sql.fetch("select part, chunk from foliot.logs order by part")]


async def test_output_and_progress_are_stored_live_and_deleted_at_the_end(store: Store, sql: Any) -> None:
    app = foliot.App()
    go_on, end = asyncio.Event(), asyncio.Event()

    @app.task
    async def chatty(ctx: foliot.Context) -> None:
        ctx.write(b"one\n")
        ctx.progress(0.25, "a\0quarter")
        await go_on.wait()
        ctx.write(b"two\n")
        await end.wait()

    async with worker_node(store, app):
        run = await submit(store, "chatty")
        await until(lambda: parts(sql))
        assert await parts(sql) == [(0, b"one\n")]
        view = await store.runs.get_run(run.id)
        assert view is not None
        assert view.progress == {"share": 0.25, "message": "a\\x00quarter", "attempt": 1}
        go_on.set()
        await until(lambda: _has(sql, 2))
        assert await parts(sql) == [(0, b"one\n"), (4, b"two\n")]
        assert await store.logs.read_logs(run.id, 1, 2, parts=10) == b"e\ntwo\n"
        end.set()
        assert (await ended(store, run)).output == b"one\ntwo\n"
        await until(lambda: _has(sql, 0))


async def test_output_of_a_sync_task_is_stored_from_its_thread(store: Store, sql: Any) -> None:
    app = foliot.App()
    end = threading.Event()

    @app.task
    def plain(ctx: foliot.Context) -> None:
        for number in range(100):
            ctx.write(b"%d\n" % number)
        end.wait(20)

    async with worker_node(store, app):
        run = await submit(store, "plain")
        await until(lambda: parts(sql))
        end.set()
        view = await ended(store, run)
    assert view.output == b"".join(b"%d\n" % number for number in range(100))


async def test_log_writer_stores_nothing_for_short_or_silent_attempts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = foliot.App()
    written: list[object] = []
    monkeypatch.setattr(Logs, "write_logs", lambda *arguments: written.append(arguments))

    @app.task
    async def short(ctx: foliot.Context) -> None:
        ctx.write(b"one\n")

    @app.task
    async def silent() -> None:
        await asyncio.sleep(1.6)

    async with worker_node(store, app):
        runs = [await submit(store, "short") for _ in range(20)] + [await submit(store, "silent")]
        views = [await ended(store, run) for run in runs]
    assert views[0].output == b"one\n"
    assert written == []


async def test_log_writer_stores_output_of_attempts_it_sees_twice(store: Store, sql: Any, events: EventBus) -> None:
    run_id = await insert(store)
    (claimed,) = await claim(store)
    running = RunningAttempt(claimed, RunOptions(), 100)
    attempts = Attempts(tasks={}, slots={}, output_max_bytes=100, holdings=Holdings(), on_outcome=lambda *_: None)
    attempts._running[run_id, claimed.token] = running
    writer = LogWriter(
        store=store, identity=WorkerIdentity(WORKER), attempts=attempts, clock=store.database.clock, events=events
    )
    running.write(b"one")
    running.context.progress(1.0)
    await writer.run_once()
    assert (await parts(sql), await sql.fetchval("select progress from foliot.runs")) == ([], None)
    await writer.run_once()
    assert await parts(sql) == [(0, b"one")]
    assert await sql.fetchval("select progress ->> 'share' from foliot.runs") == "1.0"
    # Nothing is written without new output.
    await sql.execute("update foliot.runs set progress = null")
    await writer.run_once()
    assert (await parts(sql), await sql.fetchval("select progress from foliot.runs")) == ([(0, b"one")], None)


async def test_log_writer_retries_a_failed_write_once(
    store: Store, sql: Any, events: EventBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = foliot.App()
    end = asyncio.Event()
    real, failures = Logs.write_logs, 2

    async def failing(*arguments: Any) -> None:
        nonlocal failures
        failures -= 1
        # The first write succeeds, and only its answer is lost.
        if failures == 1 or failures < 0:
            await real(*arguments)
        if failures >= 0:
            raise OSError("no way through")

    monkeypatch.setattr(Logs, "write_logs", failing)

    @app.task
    async def chatty(ctx: foliot.Context) -> None:
        ctx.write(b"one\n")
        await end.wait()

    async with worker_node(store, app):
        run = await submit(store, "chatty")
        await until(lambda: _has(sql, 2))
        assert await parts(sql) == [(0, b"one\n"), (0, b"one\n")]
        assert await store.logs.read_logs(run.id, 1, 0, parts=10) == b"one\n"
        end.set()
        await ended(store, run)


async def test_live_output_is_bounded_and_its_end_is_kept(store: Store, sql: Any) -> None:
    app = foliot.App()
    end = asyncio.Event()

    @app.task
    async def flood(ctx: foliot.Context) -> None:
        for _ in range(40):
            ctx.write(b"x" * 50_000)
        ctx.write(b"the end")
        await end.wait()

    async with worker_node(store, app):
        run = await submit(store, "flood")
        await until(lambda: parts(sql))
        assert await sql.fetchval("select sum(octet_length(chunk)) from foliot.logs") == 1_048_576
        assert await sql.fetchval("select max(octet_length(chunk)) from foliot.logs") <= 65_536
        end.set()
        output = (await ended(store, run)).output
    assert output is not None
    assert output.endswith(b"the end")


def test_output_is_cut_into_parts_with_positions() -> None:
    live = LiveOutput(room=10)
    live.write(b"abc")
    live.write(b"")
    live.write(b"defg")
    assert live.take(5) == [(0, b"abcde"), (5, b"fg")]
    assert (live.take(5), live.is_waiting) == ([], False)
    live.write(b"hijkl")
    live.write(b"m")
    assert live.take(5) == [(7, b"hij")]


async def test_progress_is_fenced_and_parts_stay_until_the_output_is_stored(store: Store, sql: Any) -> None:
    run_id = await insert(store)
    (claimed,) = await claim(store)
    part, note = LogPart(run_id, claimed.token, 0, b"x"), ProgressNote(run_id, claimed.token, '{"share": 1}')
    await store.logs.write_logs(new_id(), [part], [note])
    await store.logs.write_logs(WORKER, [], [ProgressNote(run_id, claimed.token + 1, '{"share": 1}')])
    assert await sql.fetchval("select progress from foliot.runs") is None
    await store.logs.write_logs(WORKER, [], [note])
    assert await sql.fetchval("select progress ->> 'share' from foliot.runs") == "1"
    assert await store.logs.delete_logs([(run_id, claimed.token)]) == 0
    await store.outcomes.finish_runs(WORKER, [Outcome(run_id, claimed.token, RunState.SUCCEEDED, output=b"x")])
    assert await store.logs.delete_logs([(run_id, claimed.token + 1)]) == 0
    assert await store.logs.delete_logs([(run_id, claimed.token)]) == 1


async def test_reading_stops_at_a_gap(store: Store) -> None:
    run_id = new_id()
    await store.logs.write_logs(WORKER, [LogPart(run_id, 1, at, b"abcd") for at in (0, 4, 12)], [])
    assert await store.logs.read_logs(run_id, 1, 0, parts=10) == b"abcdabcd"
    assert await store.logs.read_logs(run_id, 1, 9, parts=10) == b""
    assert await store.logs.read_logs(run_id, 1, 5, parts=1) == b"bcd"


async def _has(sql: Any, count: int) -> bool:
    return bool(await sql.fetchval("select count(*) from foliot.logs") == count)
