"""Days without a partition, after a week without a scheduler or a clock change: every write on such a day succeeds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

import foliot
from foliot.clock import Clock, SystemClock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.model.workflow import Step, plan
from foliot.scheduler.firer import Firer
from foliot.scheduler.loader import Loader
from foliot.scheduler.pruner import Pruner
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.audit_log import AuditEntry
from foliot.store.logs import LogPart
from foliot.store.partitions import partition_name
from foliot.store.store import Store, open_store
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.runs import WORKER, claim_runs, finish, insert
from tests.support.waiting import PATIENCE_SECONDS
from tests.support.workers import ended, submit, worker_node

DAY = 86_400
Act = Callable[[], Awaitable[Any]]


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock(datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0))


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


async def claimed(store: Store, **fields: Any) -> Any:
    await insert(store, **fields)
    (claim,) = await claim_runs(store, WORKER, {"mail": 1}, ["send_invoice"])
    return claim


async def finishing(store: Store) -> Act:
    claim = await claimed(store)
    return lambda: store.outcomes.finish_runs(WORKER, [Outcome(claim.run_id, claim.token, RunState.SUCCEEDED)])


async def failing(store: Store) -> Act:
    claim = await claimed(store)
    return lambda: store.outcomes.finish_runs(
        WORKER, [Outcome(claim.run_id, claim.token, RunState.FAILED, "error", error='{"kind": "E"}')]
    )


async def retrying(store: Store) -> Act:
    claim = await claimed(store)
    return lambda: store.outcomes.retry_runs(
        WORKER, [Outcome(claim.run_id, claim.token, RunState.SCHEDULED, "error", 1.0)]
    )


async def losing(store: Store) -> Act:
    await claimed(store)
    return lambda: store.lost_runs.lose_runs(10, 5)


async def burying(store: Store) -> Act:
    await claimed(store)
    return lambda: store.lost_runs.lose_runs(10, 1)


async def cancelling(store: Store) -> Act:
    run_id = await insert(store)
    await store.cancellation.mark_cancelled([run_id], "no", is_forced=False)
    return store.cancellation.end_cancelled


async def skipping(store: Store) -> Act:
    run_id = await insert(store)
    return lambda: store.runs.close_runs([run_id], RunState.SKIPPED, "test")


async def expiring(store: Store) -> Act:
    await insert(store, expires_at=await store.jobs.database_now() + timedelta(hours=1))
    return lambda: store.expiry.expire_runs(10)


async def depending_on_a_failure(store: Store) -> Act:
    failed = await finish(store, RunState.FAILED, error="no")
    return lambda: store.dependencies.insert_dependent(NewRun(id=new_id(), task="send_invoice", queue="mail"), [failed])


async def workflow_of(store: Store) -> None:
    steps = plan(
        (
            Step(key="a", task="send_invoice", queue="mail"),
            Step(key="b", task="send_invoice", queue="mail", after=("a",)),
        )
    )
    run = NewRun(id=new_id(), task="workflow", queue="mail", payload='{"steps": []}')
    await store.workflows.insert_workflow(run, steps, "continue")


async def a_step_that_fails(store: Store) -> Act:
    """The end of the step skips its dependents and ends the workflow, by the trigger on history."""
    await workflow_of(store)
    (claim,) = await claim_runs(store, WORKER, {"mail": 1}, ["send_invoice"])
    return lambda: store.outcomes.finish_runs(
        WORKER, [Outcome(claim.run_id, claim.token, RunState.FAILED, "error", error='{"kind": "E"}')]
    )


async def noting_a_tick_that_another_run_blocks(store: Store) -> Act:
    """The end of one job fires another whose previous run is still open, which the trigger notes."""
    upstream = await make_job(store, name="upstream", task="send_invoice", every="1h")
    downstream = await make_job(store, name="downstream", task="send_invoice", every="10h")

    async def follow(within: Any) -> None:
        await store.job_dependencies.insert_job_dependencies(downstream, [upstream.id], within=within)

    await store.database.in_transaction("test", follow)
    await store.database.command("test", "update foliot.job_dependencies set fires = true")
    await store.jobs.insert_triggered_run(new_id(), downstream.id)
    await store.jobs.insert_triggered_run(new_id(), upstream.id)
    claims = await claim_runs(store, WORKER, {"default": 2}, ["send_invoice"])
    runs = {claim.run_id: claim for claim in claims}
    view = [await store.runs.get_run(run_id) for run_id in runs]
    (mine,) = [runs[run.id] for run in view if run is not None and run.job_id == upstream.id]
    return lambda: store.outcomes.finish_runs(WORKER, [Outcome(mine.run_id, mine.token, RunState.SUCCEEDED)])


async def resuming(store: Store) -> Act:
    job = await make_job(store, task="send_invoice", every="1h")
    await store.jobs.pause_job(job.id, None, None)
    at = await store.jobs.database_now()

    async def act() -> bool:
        paused = await store.jobs.get_job(job.id, "")
        assert paused is not None
        return await store.jobs.resume_job(paused, at, at)

    return act


async def writing_logs(store: Store) -> Act:
    claim = await claimed(store)
    return lambda: store.logs.write_logs(WORKER, [LogPart(claim.run_id, claim.token, 0, b"hello")], [])


ENTRY: dict[str, Any] = {
    "actor": "a", "actor_namespace": None, "token_id": None, "role": None, "namespace": "default", "address": None,
    "request_id": "r",
    "method": "POST", "path": "/", "action": "x", "target": None, "status": 200, "code": None,
}  # fmt: skip


async def recording(store: Store) -> Act:
    return lambda: store.audit_log.insert_audit([AuditEntry(id=new_id(), **ENTRY)])


async def recording_beside(store: Store) -> Act:
    runs = [NewRun(id=new_id(), task="send_invoice", queue="mail")]
    entries = [AuditEntry(id=new_id(), **ENTRY)]
    return lambda: store.audit_log.with_audit(
        entries, lambda beside: store.run_inserts.insert_runs(runs, beside=beside)
    )


async def recording_within(store: Store) -> Act:
    entries = [AuditEntry(id=new_id(), **ENTRY)]
    return lambda: store.database.in_transaction(
        "test", lambda within: store.audit_log.insert_audit_within(within, entries)
    )


WRITES = {
    "history": [
        finishing, failing, burying, cancelling, skipping, expiring, depending_on_a_failure, a_step_that_fails,
        noting_a_tick_that_another_run_blocks,
    ],
    "attempts": [retrying, losing],
    "ticks": [resuming, noting_a_tick_that_another_run_blocks],
    "logs": [writing_logs],
    "audit": [recording, recording_beside, recording_within],
}  # fmt: skip
CASES = [(parent, prepare) for parent, cases in WRITES.items() for prepare in cases]


@pytest.mark.parametrize(
    ("parent", "prepare"), CASES, ids=[f"{parent}-{prepare.__name__}" for parent, prepare in CASES]
)
@pytest.mark.parametrize("days", [50, -50])
async def test_a_write_on_a_missing_day_succeeds(
    store: Store, sql: Any, fake_clock: FakeClock, parent: str, prepare: Callable[[Store], Awaitable[Act]], days: int
) -> None:
    act = await prepare(store)
    if days < 0 and prepare in (losing, burying, expiring):
        # Nothing has expired by a clock that was set back.
        return
    fake_clock.step_database(days * DAY)
    await act()
    day = (fake_clock.now() + timedelta(days=days)).date()
    assert await sql.fetchval(f"select count(*) from foliot.{partition_name(parent, day)}") >= 1


async def test_the_end_of_a_transactional_task_and_its_effect_are_written(
    database_url: str, store: Store, sql: Any
) -> None:
    app, calls = foliot.App(), 0

    @app.task(guarantee="transactional")
    async def debit(ctx: foliot.Context) -> None:
        nonlocal calls
        calls += 1
        await ctx.connection.execute("update account set balance = balance - 1")

    await sql.execute("create table account (balance bigint); insert into account values (1000)")
    async with (
        open_store(database_url, config=Config(), clock=SystemClock(), events=EventBus(), part="test") as real,
        worker_node(real, app),
    ):
        for name in await sql.fetch(
            "select inhrelid::regclass::text from pg_inherits where inhparent = 'foliot.history'::regclass"
        ):
            await sql.execute(f"drop table {name[0]}")
        view = await ended(real, await submit(real, "debit", options='{"retries": 0}'))
    assert (view.state, calls, await sql.fetchval("select balance from account")) == (RunState.SUCCEEDED, 1, 999)


async def test_concurrent_writes_on_a_missing_day_all_succeed(store: Store, sql: Any, fake_clock: FakeClock) -> None:
    acts = [await finishing(store) for _ in range(12)]
    fake_clock.step_database(50 * DAY)
    assert await asyncio.gather(*(act() for act in acts)) == [1] * 12
    assert await sql.fetchval("select count(*) from foliot.history") == 12


async def test_a_day_is_created_while_another_is_detached(
    store: Store, sql: Any, database_url: str, fake_clock: FakeClock
) -> None:
    """A detach waits for long readers. A write that needs a new day must neither wait for it nor block it."""
    act = await finishing(store)
    old = partition_name("history", fake_clock.now().date())
    reader, detacher = await asyncpg.connect(database_url), await asyncpg.connect(database_url)
    try:
        reading = reader.transaction()
        await reading.start()
        await reader.fetch("select * from foliot.history")
        detaching = asyncio.create_task(
            detacher.execute(f"alter table foliot.history detach partition foliot.{old} concurrently")
        )
        while not await sql.fetchval("select count(*) from pg_inherits where inhdetachpending"):
            await asyncio.sleep(0.01)
        fake_clock.step_database(50 * DAY)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await act() == 1
        await reading.commit()
        await detaching
    finally:
        await reader.close()
        await detacher.close()


async def test_a_clock_that_jumps_ahead_deletes_no_history(
    store: Store, sql: Any, fake_clock: FakeClock, events: EventBus
) -> None:
    kept = await finish(store)
    fake_clock.step_database(400 * DAY)
    await Pruner(store=store, clock=fake_clock, events=events).run_once()
    await finish(store)
    fake_clock.step_database(-400 * DAY)
    await Pruner(store=store, clock=fake_clock, events=events).run_once()
    assert await sql.fetchval("select count(*) from foliot.history") == 2
    assert await store.runs.get_run(kept) is not None


async def test_ticks_of_a_missing_day_fire_and_are_noted(
    store: Store, sql: Any, fake_clock: FakeClock, config: Config, events: EventBus
) -> None:
    await make_job(store, task="send_invoice", every="1h", catchup="none")
    fake_clock.step_database(50 * DAY)
    shards = ShardKeeper(store=store, config=config, clock=fake_clock, events=events)
    loader = Loader(store=store, shards=shards, clock=fake_clock, events=events)
    firer = Firer(store=store, shards=shards, loader=loader, clock=fake_clock, events=events)
    await shards.run_once()
    await loader.run_once()
    await firer.run_once()
    assert await sql.fetchval("select count(*) from foliot.ticks") >= 1
