"""Tasks whose effect and end commit together: exact in spite of every kind of failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import foliot
from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.states import RunState
from foliot.store.store import Store
from tests.support.runs import WORKER, claim_runs
from tests.support.waiting import until
from tests.support.workers import ended, submit, worker_node

ONCE = '{"retries": 0}'
SHOW_IDLE_LIMIT = "show idle_in_transaction_session_timeout"


@pytest.fixture
async def account(sql: Any) -> None:
    await sql.execute(
        "create table account (id bigint primary key, balance bigint not null); insert into account values (1, 1000)"
    )


def bank() -> foliot.App:
    app = foliot.App()

    @app.task(guarantee="transactional")
    async def debit(amount: int, ctx: foliot.Context, fails: bool = False) -> dict[str, int]:
        balance = await ctx.connection.fetchval(
            "update account set balance = balance - $1 where id = 1 returning balance", amount
        )
        if fails:
            raise ValueError("no")
        return {"balance": balance}

    return app


async def balance(sql: Any) -> int:
    found: int = await sql.fetchval("select balance from account")
    return found


@pytest.mark.usefixtures("account")
async def test_an_effect_and_the_end_of_its_run_commit_together(store: Store, sql: Any) -> None:
    async with worker_node(store, bank()):
        view = await ended(store, await submit(store, "debit", payload='{"amount": 10}'))
        assert (view.state, view.result, await balance(sql)) == (RunState.SUCCEEDED, {"balance": 990}, 990)
        view = await ended(store, await submit(store, "debit", payload='{"amount": 10, "fails": true}', options=ONCE))
        assert (view.state, view.error["kind"], await balance(sql)) == (RunState.FAILED, "ValueError", 990)


@pytest.mark.usefixtures("account")
async def test_a_run_that_was_given_to_another_leaves_no_effect(store: Store, sql: Any) -> None:
    app = foliot.App()
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.task(guarantee="transactional")
    async def debit(ctx: foliot.Context) -> None:
        await ctx.connection.execute("update account set balance = 0")
        started.set()
        await go_on.wait()

    patient = Config(poll_seconds=0.05, worker_ttl_seconds=900, worker_beat_seconds=300, grace_seconds=5)
    async with worker_node(store, app, config=patient, slots=1):
        run = await submit(store, "debit", options=ONCE)
        await started.wait()
        await sql.execute("update foliot.runs set token = token + 1, worker_id = gen_random_uuid()")
        go_on.set()
        idle = (
            "select count(*) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()"
        )
        await until(lambda: sql.fetchval(f"select ({idle}) = 0"))
    assert await balance(sql) == 1000
    found = await store.runs.get_run(run.id)
    assert found is not None
    assert found.state is RunState.RUNNING


@pytest.mark.usefixtures("account")
async def test_a_worker_that_freezes_before_its_commit_does_not_keep_the_run(
    store: Store, config: Config, sql: Any
) -> None:
    """Between the statement that ends the run and the commit, the run is locked, so it cannot be given to another
    worker."""
    app = foliot.App()
    limits: list[str] = []

    @app.task(guarantee="transactional", timeout=3600)
    async def debit(ctx: foliot.Context) -> None:
        limits.append(await ctx.connection.fetchval(SHOW_IDLE_LIMIT))
        # Constraints that PostgreSQL checks at the commit run under the limit for a frozen worker.
        await ctx.connection.execute("update account set balance = 0")

    await sql.execute("""
        create table seen (idle_limit text);
        create function note() returns trigger language plpgsql as $$
        begin insert into seen select current_setting('idle_in_transaction_session_timeout'); return null; end $$;
        create constraint trigger a_note after update on account deferrable initially deferred for each row execute
            function note()
    """)
    async with worker_node(store, app):
        await ended(store, await submit(store, "debit"))
    assert limits == ["1h"]
    assert await sql.fetchval("select idle_limit from seen") == f"{config.database_idle_in_transaction_seconds:g}s"


@pytest.mark.usefixtures("account")
async def test_broken_connections_lose_or_repeat_no_effect(store: Store, sql: Any) -> None:
    jobs = 300
    async with worker_node(store, bank(), slots=20):
        runs = [
            await submit(
                store,
                "debit",
                payload='{"amount": 1}',
                options='{"retries": 1000, "backoff": {"kind": "fixed", "base_seconds": 0.01}}',
            )
            for _ in range(jobs)
        ]
        for _ in range(15):
            await asyncio.sleep(0.05)
            await sql.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and query like "
                "'%account%' and datname = current_database()"
            )
            await store.due_runs.promote_due_runs(1000)

        async def all_ended() -> bool:
            await store.due_runs.promote_due_runs(1000)
            return bool(await sql.fetchval("select count(*) = 0 from foliot.runs"))

        await until(all_ended)
        assert {(await ended(store, run)).state for run in runs} == {RunState.SUCCEEDED}
    assert await balance(sql) == 1000 - jobs
    assert await sql.fetchval("select count(*) from foliot.history") == jobs


def test_a_plain_function_can_not_be_transactional() -> None:
    app = foliot.App()
    with pytest.raises(Invalid, match="async function"):

        @app.task(guarantee="transactional")
        def debit() -> None: ...


async def test_a_lost_attempt_of_an_at_most_once_task_is_not_repeated(store: Store, sql: Any) -> None:
    await store.workers.announce_tasks({"once": "default", "often": "default"}, {"once": "at_most_once", "often": None})
    await submit(store, "once")
    await submit(store, "often", options='{"guarantee": "at_most_once"}')
    await submit(store, "often")
    await claim_runs(store, WORKER, {"default": 10}, ["once", "often"])
    await store.workers.remove_worker(WORKER)
    lost = await store.lost_runs.lose_runs(10, 3)
    assert (lost.requeued, lost.buried) == (1, 2)
    assert await sql.fetchval("select array_agg(distinct reason) from foliot.history") == ["lost"]
