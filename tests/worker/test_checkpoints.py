"""Durable functions on a worker: steps are recorded once, and waits occupy no slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

import foliot
from foliot.model.run import RunView
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.schedulers import scheduler_node
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node


@pytest.fixture
async def scheduler(store: Store) -> AsyncIterator[None]:
    async with scheduler_node(store):
        yield


class Calls:
    """Counts the calls of step functions."""

    def __init__(self) -> None:
        self.made: list[str] = []

    async def note(self, what: str) -> str:
        self.made.append(what)
        return f"{what} done"


@dataclass
class Receipt:
    order: int
    at: datetime


async def in_state(store: Store, run_id: Any, state: RunState) -> RunView:
    async def look() -> RunView | None:
        view = await store.runs.get_run(run_id)
        return view if view is not None and view.state is state else None

    view = await until(look)
    assert view is not None
    return view


async def test_a_recorded_step_is_not_called_again(store: Store, sql: Any, scheduler: None) -> None:
    app, calls = foliot.App(), Calls()

    @app.task(retries=5, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
    async def order(ctx: foliot.Context) -> list[str]:
        done = [await ctx.step(f"step {number}", calls.note, f"{number}") for number in range(3)]
        if ctx.attempt < 3:
            raise RuntimeError("not yet")
        return [*done, await ctx.step("last", calls.note, "last")]

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "order"))
    assert view.state is RunState.SUCCEEDED, view.error
    assert view.attempt == 3
    assert view.result == ["0 done", "1 done", "2 done", "last done"]
    assert calls.made == ["0", "1", "2", "last"]
    rows = await sql.fetch("select name, kind, attempt, function from foliot.checkpoints order by started_at")
    assert [tuple(row)[:3] for row in rows] == [
        ("step 0", "step", 1), ("step 1", "step", 1), ("step 2", "step", 1), ("last", "step", 3),
    ]  # fmt: skip
    assert rows[0]["function"].endswith("Calls.note")


async def test_a_step_returns_its_annotated_type_in_every_attempt(store: Store, scheduler: None) -> None:
    app, seen = foliot.App(), []

    async def receipt(order: int) -> Receipt:
        return Receipt(order, datetime.fromisoformat("2026-01-02T03:04:05+00:00"))

    @app.task(retries=1, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
    async def order(ctx: foliot.Context) -> None:
        seen.append(await ctx.step("receipt", receipt, 7))
        if ctx.attempt == 1:
            raise RuntimeError("once more")

    async with worker_node(store, app):
        await ended(store, await submit(store, "order"))
    assert seen == [Receipt(7, datetime.fromisoformat("2026-01-02T03:04:05+00:00"))] * 2


async def test_a_step_that_raises_is_not_recorded_and_its_own_retries_stay_in_the_attempt(
    store: Store, sql: Any, scheduler: None
) -> None:
    app, tries = foliot.App(), []

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("away")
        return "here"

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> str:
        backoff = foliot.Backoff(kind="fixed", base_seconds=0.01)
        with pytest.raises(OSError, match="away"):
            await ctx.step("fails", flaky)
        return await ctx.step("works", flaky, retries=5, backoff=backoff)

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "order"))
    assert (view.state, view.result, view.attempt) == (RunState.SUCCEEDED, "here", 1)
    assert await sql.fetchval("select array_agg(name) from foliot.checkpoints") == ["works"]


async def test_a_step_has_a_time_limit_of_its_own(store: Store) -> None:
    app = foliot.App()

    async def slow() -> None:
        await asyncio.sleep(60)

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> None:
        await ctx.step("slow", slow, timeout=0.05)

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "order"))
    assert view.state is RunState.FAILED
    assert view.error["kind"] == "TimeoutError"
    assert "step 'slow' ran longer than its 0.05 s" in view.error["message"]


async def test_a_sleep_frees_the_slot_and_does_not_start_over(store: Store, sql: Any, scheduler: None) -> None:
    app, calls = foliot.App(), Calls()

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> str:
        await ctx.step("before", calls.note, "before")
        await ctx.sleep("1h")
        return await ctx.step("after", calls.note, "after")

    async with worker_node(store, app, slots=1):
        run = await submit(store, "order")
        view = await in_state(store, run.id, RunState.SCHEDULED)
        assert view.attempt == 0
        assert await sql.fetchval("select due_at - now() between '59 minutes' and '1 hour' from foliot.runs")
        # Woken early, it sleeps until the same instant.
        due_at = await sql.fetchval("select due_at from foliot.runs")
        await sql.execute("update foliot.runs set due_at = now()")
        await until(lambda: sql.fetchval("select count(*) = 2 from foliot.attempts where outcome = 'suspended'"))
        await in_state(store, run.id, RunState.SCHEDULED)
        assert await sql.fetchval("select due_at from foliot.runs") == due_at
        await sql.execute("update foliot.checkpoints set due_at = now() where kind = 'sleep'")
        await sql.execute("update foliot.runs set due_at = now()")
        view = await ended(store, run)
    assert (view.state, view.result, view.attempt) == (RunState.SUCCEEDED, "after done", 1)
    assert calls.made == ["before", "after"]


async def test_a_sleep_that_has_ended_is_listed_as_finished_although_the_function_waits_for_something_else(
    store: Store, scheduler: None
) -> None:
    app = foliot.App()

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> None:
        await ctx.sleep(0.01)
        await ctx.wait_signal("approved")

    async with worker_node(store, app):
        run = await submit(store, "order")
        await in_state(store, run.id, RunState.HELD)
        sleep, signal = await store.checkpoints.list_checkpoints(run.id, after=None, limit=10)
    assert sleep.finished_at is not None
    assert signal.finished_at is None


async def test_a_wait_for_a_signal_occupies_no_slot(store: Store, scheduler: None) -> None:
    app = foliot.App()

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> Any:
        return await ctx.wait_signal("approved")

    async with worker_node(store, app, slots=1):
        run = await submit(store, "order")
        view = await in_state(store, run.id, RunState.HELD)
        assert view.held_by == "signal"
        found = await store.checkpoints.signal(run.id, "approved", '{"payload": {"by": "ada"}, "approved": true}')
        assert found is not None
        assert found.state is RunState.READY
        view = await ended(store, run)
    assert (view.state, view.result) == (RunState.SUCCEEDED, {"by": "ada"})


async def test_a_signal_that_comes_before_its_wait_is_not_lost(store: Store, scheduler: None) -> None:
    app, reached = foliot.App(), asyncio.Event()
    go = asyncio.Event()

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> Any:
        reached.set()
        await go.wait()
        return await ctx.wait_signal("approved")

    async with worker_node(store, app, slots=1):
        run = await submit(store, "order")
        await reached.wait()
        assert await store.checkpoints.signal(run.id, "approved", '{"payload": 7}')
        go.set()
        view = await ended(store, run)
    assert (view.state, view.result) == (RunState.SUCCEEDED, 7)


@pytest.mark.parametrize("is_caught", [False, True])
async def test_a_missing_signal_times_out(store: Store, scheduler: None, is_caught: bool) -> None:
    app = foliot.App()

    @app.task(retries=3)
    async def order(ctx: foliot.Context) -> str:
        try:
            await ctx.wait_signal("approved", timeout=0.3)
        except foliot.SignalTimeout:
            if not is_caught:
                raise
        return "nobody answered"

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "order"))
    assert view.attempt == 1
    if is_caught:
        assert view.result == "nobody answered"
    else:
        assert view.state is RunState.FAILED
        assert view.error["kind"].endswith("SignalTimeout")


async def test_a_rejected_function_fails(store: Store, scheduler: None) -> None:
    app = foliot.App()

    @app.task(retries=3)
    async def order(ctx: foliot.Context) -> None:
        await ctx.wait_signal("approved")

    async with worker_node(store, app):
        run = await submit(store, "order")
        await store.checkpoints.signal(run.id, "approved", '{"approved": false, "message": "too dear"}')
        view = await ended(store, run)
    assert view.state is RunState.FAILED
    assert "too dear" in view.error["message"]


async def test_waits_for_called_runs_occupy_no_slot(store: Store, sql: Any, scheduler: None) -> None:
    app = foliot.App()

    @app.task
    async def ship(item: int) -> int:
        return item * 10

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> list[int]:
        first = await ctx.call(ship, item=1)
        rest = await asyncio.gather(*(ctx.call(f"ship-{item}", ship, item=item) for item in (2, 3)))
        return [first, *rest]

    async with worker_node(store, app, slots=1):
        run = await submit(store, "order")
        view = await ended(store, run)
    assert (view.state, view.result) == (RunState.SUCCEEDED, [10, 20, 30]), view.error
    children = await sql.fetch("select parent_id, step from foliot.history where task = 'ship' order by step")
    assert [tuple(child) for child in children] == [(run.id, "ship"), (run.id, "ship-2"), (run.id, "ship-3")]
    assert await sql.fetchval("select count(*) from foliot.dependencies") == 0


async def test_a_called_run_that_fails_raises_in_its_caller(store: Store, scheduler: None) -> None:
    app = foliot.App()

    @app.task(retries=0)
    async def ship(item: int) -> None:
        raise ValueError(f"no item {item}")

    @app.task(retries=3)
    async def order(ctx: foliot.Context) -> list[str]:
        found = await asyncio.gather(
            *(ctx.call(f"ship-{item}", ship, item=item) for item in (1, 2)), return_exceptions=True
        )
        return [f"{error.kind}: {error.message}" for error in found if isinstance(error, foliot.ChildFailed)]

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "order"))
    assert (view.state, view.result) == (RunState.SUCCEEDED, ["ValueError: no item 1", "ValueError: no item 2"]), (
        view.error
    )


async def test_the_end_of_a_caller_ends_the_runs_that_it_called(store: Store, sql: Any, scheduler: None) -> None:
    app = foliot.App()

    @app.task
    async def ship() -> None:
        await asyncio.sleep(600)

    @app.task(retries=0)
    async def order(ctx: foliot.Context) -> None:
        await ctx.call(ship)

    async with worker_node(store, app):
        run = await submit(store, "order")
        await in_state(store, run.id, RunState.WAITING)
        await until(
            lambda: sql.fetchval("select exists (select from foliot.runs where task = 'ship' and state = 'running')")
        )
        await store.cancellation.mark_cancelled([run.id], "enough", is_forced=False)
        view = await ended(store, run)
        assert view.state is RunState.CANCELLED
        await until(
            lambda: sql.fetchval("select count(*) = 1 from foliot.history where task = 'ship' and state = 'cancelled'")
        )
        await until(lambda: sql.fetchval("select count(*) = 0 from foliot.nudges"))


async def test_a_plain_function_uses_the_same_steps(store: Store, scheduler: None) -> None:
    app, made = foliot.App(), []

    def charge(order: int) -> str:
        made.append(foliot.step_key())
        return f"paid {order}"

    @app.task
    def ship(payment: str) -> str:
        return f"shipped, {payment}"

    @app.task(retries=0)
    def order(ctx: foliot.Context) -> str:
        payment = ctx.sync.step("charge", charge, 7)
        ctx.sync.sleep(1.2)
        result: str = ctx.sync.call(ship, payment=payment)
        return result

    async with worker_node(store, app):
        run = await submit(store, "order")
        view = await ended(store, run)
    assert (view.state, view.result) == (RunState.SUCCEEDED, "shipped, paid 7"), view.error
    assert made == [f"{run.id}:charge"]


async def test_an_effect_in_the_database_is_committed_with_its_record(store: Store, sql: Any, scheduler: None) -> None:
    await sql.execute("create table paid (amount bigint)")
    app = foliot.App()

    async def pay(connection: Any, amount: int) -> int:
        await connection.execute("insert into paid values ($1)", amount)
        return amount

    @app.task(retries=1, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
    async def order(ctx: foliot.Context) -> int:
        paid = await ctx.transaction("pay", pay, 7)
        if ctx.attempt == 1:
            raise RuntimeError("once more")
        return paid

    async with worker_node(store, app):
        view = await ended(store, await submit(store, "order"))
    assert (view.state, view.result) == (RunState.SUCCEEDED, 7)
    assert await sql.fetchval("select sum(amount) from paid") == 7
