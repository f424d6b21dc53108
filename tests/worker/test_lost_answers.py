"""A worker that loses the answer to a statement starts no run twice, strands none, and ends each once.

`docs/reliability.md` lists every statement between a worker's memory and the database. Each is tested here: the
connection breaks right before the statement, or right after PostgreSQL has executed it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec
import pytest

import foliot
from foliot.errors import StoreUnavailable
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.scheduler.promoter import Promoter
from tests.support.breakable_store import door_to, store_behind
from tests.support.waiting import until
from tests.support.worker_bench import NUMBER, Bench, lose_next_answer
from tests.support.workers import QUICK, worker_node


async def test_a_heartbeat_finds_a_claim_that_committed_late(bench: Bench) -> None:
    """No statement timeout limits a COMMIT that waits for its disk."""
    await bench.insert(2)
    await bench.store.claims.claim_runs(bench.identity.id, {"default": 2}, ["task"])
    await bench.turn()
    assert not bench.started
    beat = await bench.store.workers.beat(bench.identity.id, bench.holdings.keys())
    assert beat.owns_unheld
    bench.claimer.recover_lost_claims()
    await bench.turn()
    assert sorted(bench.started.values()) == [1, 1]
    assert not (await bench.store.workers.beat(bench.identity.id, bench.holdings.keys())).owns_unheld
    await bench.flush()


async def test_recovered_runs_take_no_more_slots_than_there_are(bench: Bench) -> None:
    await bench.insert(NUMBER + 5)
    await bench.store.claims.claim_runs(bench.identity.id, {"default": NUMBER + 5}, ["task"])
    bench.claimer.recover_lost_claims()
    await bench.claimer.run_once()
    assert len(bench.holdings) == NUMBER
    await bench.attempts.ended()
    await bench.turn()
    assert sorted(bench.started.values()) == [1] * (NUMBER + 5)
    await bench.flush()


async def test_a_stopping_worker_releases_runs_of_a_lost_claim(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, sql: Any
) -> None:
    await bench.insert(2)
    lose_next_answer(monkeypatch, bench.store.claims, "claim_runs")
    with pytest.raises(StoreUnavailable):
        await bench.turn()
    await bench.claimer.give_back_unstarted()
    await bench.flush()
    rows = await sql.fetch("select state, attempt, lost from foliot.runs")
    assert [tuple(row) for row in rows] == [("ready", 0, 0)] * 2
    assert not bench.started


async def test_claimed_runs_start_although_the_claim_from_a_limited_queue_fails(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.insert(2)
    bench.claimer.limited_queues = frozenset({"default"})

    async def fail(*_: object) -> None:
        raise StoreUnavailable("busy", is_doubtful=False)

    monkeypatch.setattr(bench.store.claims, "claim_limited_runs", fail)
    with pytest.raises(StoreUnavailable):
        await bench.claimer.run_once()
    await bench.attempts.ended()
    assert sorted(bench.started.values()) == [1, 1]
    await bench.flush()


# The tests below use a real connection that breaks.

STATEMENTS = (
    "claim_runs",
    "recover_claims",
    "finish_runs",
    "succeed_runs",
    "retry_runs",
    "count_written",
    "commit",
    "expand_run",
    "read_upstream",
    "register_worker",
    "beat",
    "write_logs",
)
TALKING_SECONDS = 1.5
"""Longer than a worker waits before it stores output for the first time."""


class Effects:
    """The starts of each run, counted outside of the database."""

    def __init__(self) -> None:
        self.starts: Counter[tuple[str, int]] = Counter()

    def app(self) -> foliot.App:
        app = foliot.App()
        note = self._note

        @app.task(guarantee="at_most_once", retries=0)
        async def quick(mark: str) -> None:
            self.starts[mark, 0] += 1

        @app.task(guarantee="at_most_once", retries=0)
        async def slow(ctx: foliot.Context) -> str:
            note(ctx)
            await asyncio.sleep(0.01)
            return "done"

        @app.task(retries=3, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
        async def again(ctx: foliot.Context) -> None:
            note(ctx)
            if ctx.attempt == 1:
                raise RuntimeError("once more")

        @app.task
        async def talk(ctx: foliot.Context) -> None:
            note(ctx)
            ctx.logger.info("good morning")
            await asyncio.sleep(TALKING_SECONDS)

        @app.task(retries=0)
        async def doomed(ctx: foliot.Context) -> None:
            note(ctx)
            raise foliot.Fail("as it was told")

        @app.task(guarantee="transactional", retries=5, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
        async def pay(ctx: foliot.Context) -> None:
            note(ctx)
            await ctx.connection.execute("insert into paid values ($1)", ctx.run_id)

        return app

    def _note(self, ctx: foliot.Context) -> None:
        self.starts[str(ctx.run_id), ctx.token] += 1


def runs() -> list[NewRun]:
    wanted: list[NewRun] = []
    for number in range(NUMBER):
        wanted += [
            NewRun(id=new_id(), task="quick", queue="default", payload=f'{{"mark": "{number}"}}'),
            *(NewRun(id=new_id(), task=task, queue="default") for task in ("slow", "again", "pay", "doomed")),
        ]
    numbers = '{"task": "quick", "map": {"items": ["first item", "second item"], "item_name": "mark"}}'
    steps = '{"steps": [{"key": "first", "task": "slow"}, {"key": "second", "task": "slow", "after": ["first"]}]}'
    return [
        *wanted,
        NewRun(id=new_id(), task="talk", queue="default"),
        NewRun(id=new_id(), task="map", queue="default", payload=numbers),
        NewRun(id=new_id(), task="workflow", queue="default", payload=steps),
    ]


@pytest.fixture
async def paid(sql: Any) -> Callable[[], Any]:
    await sql.execute("create table paid (run_id uuid not null)")

    async def look() -> list[UUID]:
        return [row[0] for row in await sql.fetch("select run_id from paid")]

    return look


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("statement", STATEMENTS)
async def test_each_statement_may_lose_its_answer(
    database_url: str, sql: Any, paid: Callable[[], Any], statement: str, is_after: bool
) -> None:
    effects, wanted = Effects(), runs()
    async with door_to(database_url) as door, store_behind(door, database_url, config=QUICK) as store:
        promoter = Promoter(store=store, clock=store.database.clock, events=store.events)
        await promoter.start()
        trap = door.set_trap(statement, is_after=is_after)
        if statement in ("recover_claims", "count_written"):
            # These statements occur only after a lost answer.
            door.set_trap("claim_runs" if statement == "recover_claims" else "finish_runs", is_after=True)
        async with worker_node(store, effects.app(), slots=NUMBER):
            # First a batch of successes, which a statement of its own writes.
            for wave in (
                [run for run in wanted if run.task == "quick"],
                [run for run in wanted if run.task != "quick"],
            ):
                await store.run_inserts.insert_runs(wave)

                async def all_ended() -> bool:
                    return bool(await sql.fetchval("select count(*) = 0 from foliot.runs"))

                await until(all_ended)
        await promoter.stop()
    assert trap.sprung.is_set()
    assert max(effects.starts.values()) == 1, "a run started twice under one token"
    states = Counter(
        row[0]
        for row in await sql.fetch("select state from foliot.history where id = any ($1)", [run.id for run in wanted])
    )
    assert states == {RunState.SUCCEEDED: len(wanted) - NUMBER, RunState.FAILED: NUMBER}
    assert sorted(await paid()) == sorted(run.id for run in wanted if run.task == "pay")


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("statement", ["release_runs", "remove_worker"])
async def test_a_stopping_worker_may_lose_its_last_answers(
    database_url: str, sql: Any, statement: str, is_after: bool
) -> None:
    app, started = foliot.App(), asyncio.Event()

    @app.task
    async def endless(ctx: foliot.Context) -> None:
        started.set()
        await asyncio.Event().wait()

    run = NewRun(id=new_id(), task="endless", queue="default")
    config = msgspec.structs.replace(QUICK, grace_seconds=0.1)
    async with door_to(database_url) as door, store_behind(door, database_url, config=config) as store:
        trap = door.set_trap(statement, is_after=is_after)
        async with worker_node(store, app, config=config):
            await store.run_inserts.insert_runs([run])
            await started.wait()
    assert trap.sprung.is_set()
    row = await sql.fetchrow(
        "select state, attempt, lost, (select count(*) from foliot.workers) from foliot.runs where id = $1", run.id
    )
    assert tuple(row) == ("ready", 0, 0, 0)
