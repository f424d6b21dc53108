"""The output that an attempt had written before its worker died is kept, complete or cut in the middle, whether its run
is retried or fails."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus
from foliot.model.log_text import capped, pieces_from
from foliot.scheduler.reaper import OUTPUTS, Reaper
from foliot.store.logs import PART_MAX_BYTES, LogPart
from foliot.store.store import Store
from foliot.worker.executors.output import CappedOutput
from tests.support.runs import WORKER, claim, insert
from tests.support.waiting import until

LIMIT = 1000


@pytest.fixture
def config() -> Config:
    return Config(output_max_bytes=LIMIT, lost_attempts_max=2, reaper_seconds=0.05)


async def shown_and_lost(store: Store, *outputs: bytes) -> list[UUID]:
    """Runs of a dead worker with the output that each had written, some of it twice."""
    runs = [await insert(store) for _ in outputs]
    tokens = {one.run_id: one.token for one in await claim(store, count=len(runs))}
    for run_id, output in zip(runs, outputs, strict=True):
        parts = [
            LogPart(run_id, tokens[run_id], at, output[at : at + PART_MAX_BYTES])
            for at in range(0, len(output), PART_MAX_BYTES)
        ]
        await store.logs.write_logs(WORKER, [*parts, *parts[:1]], [])
    await store.workers.remove_worker(WORKER)
    return runs


async def reap(store: Store, config: Config, clock: Clock, events: EventBus, sql: Any) -> None:
    reaper = Reaper(store=store, config=config, clock=clock, events=events)
    await reaper.start()
    await until(lambda: sql.fetchval("select count(*) = 0 from foliot.runs where state = 'running'"))
    await until(lambda: sql.fetchval("select count(*) = 0 from foliot.logs"))
    await reaper.stop()


async def test_a_lost_attempt_keeps_its_output_whether_its_run_is_retried_or_fails(
    store: Store, sql: Any, config: Config, clock: Clock, events: EventBus
) -> None:
    outputs = [b"first", "naïve\n".encode() * 20, b"x" * 3 * PART_MAX_BYTES + b"the end"]
    runs = await shown_and_lost(store, *outputs)
    await reap(store, config, clock, events, sql)
    for run_id, output in zip(runs, outputs, strict=True):
        row = await sql.fetchrow("select outcome, output from foliot.attempts where run_id = $1", run_id)
        assert tuple(row) == ("lost", capped(output, LIMIT))
        view = await store.runs.get_run(run_id)
        assert view is not None
        assert view.output == capped(output, LIMIT)
    # Lost again, each run fails, with the output of its second attempt.
    for one in await claim(store, count=len(runs)):
        await store.logs.write_logs(WORKER, [LogPart(one.run_id, one.token, 0, b"second")], [])
    await store.workers.remove_worker(WORKER)
    await reap(store, config, clock, events, sql)
    rows = await sql.fetch("select state, reason, output from foliot.history where id = any ($1)", runs)
    assert {tuple(row) for row in rows} == {("failed", "lost", b"second")}
    assert [one.output_bytes for one in await store.run_lists.list_attempts(runs[0])] == [
        len(outputs[0]),
        len(b"second"),
    ]


async def test_many_lost_attempts_keep_their_outputs(
    store: Store, sql: Any, config: Config, clock: Clock, events: EventBus
) -> None:
    outputs = [b"" if number % 5 == 0 else b"output %d" % number for number in range(2 * OUTPUTS + 5)]
    runs = await shown_and_lost(store, *outputs)
    await reap(store, config, clock, events, sql)
    kept = dict(await sql.fetch("select run_id, output from foliot.attempts"))
    assert kept == {run_id: output or None for run_id, output in zip(runs, outputs, strict=True)}


async def test_an_output_with_a_gap_is_kept_up_to_the_gap(
    store: Store, sql: Any, config: Config, clock: Clock, events: EventBus
) -> None:
    (run_id,) = await shown_and_lost(store, b"before")
    token = await sql.fetchval("select token from foliot.runs")
    await store.logs.write_logs(WORKER, [LogPart(run_id, token, 100, b"after")], [])
    await reap(store, config, clock, events, sql)
    assert await sql.fetchval("select output from foliot.attempts") == b"before"


@pytest.mark.parametrize("limit", [0, 1, 7, 1000])
@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 999, 1000, 1001, 5000])
def test_an_output_is_cut_as_a_worker_cuts_it(size: int, limit: int) -> None:
    output = bytes(number % 251 for number in range(size))
    by_worker = CappedOutput(limit)
    by_worker.write(output)
    assert capped(output, limit) == by_worker.value()
    if limit > 100:
        assert sum(len(piece) for _, piece in pieces_from(capped(output, limit), 0)) == len(capped(output, limit))
