"""A durable function whose worker loses the answer to a statement calls no step twice, makes no second child and ends
once. The connection breaks right before the statement, or right after PostgreSQL has executed it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import foliot
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.breakable_store import door_to, store_behind
from tests.support.schedulers import scheduler_node
from tests.support.waiting import until
from tests.support.workers import QUICK, worker_node

NUMBER = 5
STATEMENTS = (
    "open_checkpoints",
    "record_checkpoints",
    "record_in",
    "await_signal",
    "begin_call",
    "tie_child",
    "lock_suspending",
    "suspend_runs",
)


class Orders:
    """A function that uses a step, a transaction, a called run and a signal. Effects are counted outside."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.starts: Counter[tuple[str, int]] = Counter()

    def app(self) -> foliot.App:
        app, charge = foliot.App(), self._charge

        @app.task(retries=0)
        async def ship(item: int) -> int:
            return item * 10

        # A transaction that loses its connection fails its attempt.
        @app.task(retries=5, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
        async def order(ctx: foliot.Context) -> list[Any]:
            self.starts[str(ctx.run_id), ctx.token] += 1
            charged = await ctx.step("charge", charge, str(ctx.run_id))

            async def pay(session: Any) -> str:
                await session.execute("insert into paid values ($1)", ctx.run_id)
                return "paid"

            paid = await ctx.transaction("pay", pay)
            return [charged, paid, await ctx.call(ship, item=1), await ctx.wait_signal("approved")]

        return app

    async def _charge(self, run_id: str) -> str:
        self.steps[run_id] += 1
        return "charged"


async def approve(store: Store, run: NewRun) -> None:
    async def is_waiting() -> bool:
        view = await store.runs.get_run(run.id)
        return view is not None and view.held_by == "signal"

    await until(is_waiting)
    assert await store.checkpoints.signal(run.id, "approved", '{"payload": "yes"}')


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("statement", STATEMENTS)
async def test_each_statement_of_a_durable_function_may_lose_its_answer(
    store: Store, database_url: str, sql: Any, statement: str, is_after: bool
) -> None:
    orders = Orders()
    await sql.execute("create table paid (run_id uuid not null)")
    wanted = [NewRun(id=new_id(), task="order", queue="default") for _ in range(NUMBER)]
    async with (
        scheduler_node(store),
        door_to(database_url) as door,
        store_behind(door, database_url, config=QUICK) as behind,
    ):
        trap = door.set_trap(statement, is_after=is_after)
        async with worker_node(behind, orders.app(), slots=NUMBER):
            await store.run_inserts.insert_runs(wanted)
            for run in wanted:
                await approve(store, run)

            async def all_ended() -> bool:
                return bool(await sql.fetchval("select count(*) = 0 from foliot.runs"))

            await until(all_ended)
    assert trap.sprung.is_set()
    assert orders.steps == {str(run.id): 1 for run in wanted}, "a step was called twice, or never"
    assert max(orders.starts.values()) == 1, "a run started twice under one token"
    rows = await sql.fetch("select state, result from foliot.history where task = 'order'")
    assert {(row[0], row[1]) for row in rows} == {(RunState.SUCCEEDED, '["charged","paid",10,"yes"]')}
    assert len(rows) == await sql.fetchval("select count(*) from foliot.history where task = 'ship'") == NUMBER
    assert sorted(row[0] for row in await sql.fetch("select run_id from paid")) == sorted(run.id for run in wanted)
