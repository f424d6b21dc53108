"""Minutes and hours are summed up once, for charts, and forgotten again."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.histogram import BOUNDS, quantile_of
from foliot.model.namespace import Namespace
from foliot.scheduler.recorder import Recorder
from foliot.store.rollups import HOUR, MINUTE
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.plans import rows_read

# A state, a queue, when they were due, the seconds they waited, and how many.
ENDED = """
insert into foliot.history (
    id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task
)
select gen_random_uuid(), $3::timestamptz, $3, $3 + $4::bigint * interval '1 second', $3 + interval '20 s', 1, 1, 0, 0,
    $1, $2, 't'
from generate_series(1, $5::bigint)
"""


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
async def recorder(store: Store, fake_clock: FakeClock, events: EventBus) -> Recorder:
    await store.partitions.create_missing()
    return Recorder(store=store, clock=fake_clock, events=events)


async def catch_up(recorder: Recorder) -> float:
    while (delay := await recorder.run_once()) == 0:
        pass
    return delay


async def test_each_minute_is_recorded_once_by_state_queue_and_wait(
    recorder: Recorder, store: Store, fake_clock: FakeClock, events: EventBus, sql: Any
) -> None:
    start = fake_clock.now()
    await catch_up(recorder)
    await sql.execute(ENDED, "succeeded", "mail", start, 2, 3)
    await sql.execute(ENDED, "failed", "mail", start, 40, 1)
    await sql.execute(ENDED, "skipped", "team/mail", start, 0, 5)
    assert 0 < await catch_up(recorder) <= 62
    await fake_clock.advance(63)
    others = [Recorder(store=store, clock=fake_clock, events=events) for _ in range(3)]
    await asyncio.gather(*(catch_up(one) for one in (recorder, *others)))
    for name, by_queue, wanted in (
        ("default", False, ("", 3, 1, 0)),
        ("default", True, ("mail", 3, 1, 0)),
        ("team", False, ("", 0, 0, 5)),
        ("team", True, ("team/mail", 0, 0, 5)),
    ):
        (row,) = await store.rollups.list_rollups(MINUTE, Namespace(name), start, start + HOUR, by_queue=by_queue)
        assert (row.at, row.queue, row.succeeded, row.failed, row.skipped) == (start, *wanted)
    (total,) = await store.rollups.list_rollups(MINUTE, Namespace(), start, start + HOUR, by_queue=False)
    assert len(total.waits) == len(BOUNDS) + 1
    assert 1 < (quantile_of(total.waits, 0.5) or 0) <= 2.5
    assert 30 < (quantile_of(total.waits, 0.95) or 0) <= 60


async def test_a_minute_waits_for_a_transaction_that_ends_runs_in_it(
    recorder: Recorder, store: Store, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await catch_up(recorder)
    before = await store.rollups.last_recorded(MINUTE)
    await fake_clock.advance(65)
    horizon = fake_clock.now() - timedelta(seconds=30)

    async def earlier(_: float) -> datetime:
        return horizon

    monkeypatch.setattr(type(store.run_events), "ending_horizon", lambda _, seconds: earlier(seconds))
    assert 0 < await recorder.run_once() < 10
    assert await store.rollups.last_recorded(MINUTE) == before
    horizon = fake_clock.now()
    await catch_up(recorder)
    assert before is not None
    assert await store.rollups.last_recorded(MINUTE) == before + MINUTE


async def test_an_hour_sums_up_its_minutes_and_old_minutes_go(
    recorder: Recorder, store: Store, fake_clock: FakeClock, sql: Any
) -> None:
    start = fake_clock.now()
    await catch_up(recorder)
    for minute in (0, 10, 59):
        await sql.execute(ENDED, "succeeded", "mail", start + timedelta(minutes=minute), 1, 2)
    await fake_clock.advance(3603)
    await catch_up(recorder)
    (hour,) = await store.rollups.list_rollups(HOUR, Namespace(), start, start + 2 * HOUR, by_queue=False)
    assert (hour.at, hour.succeeded, sum(hour.waits)) == (start, 6, 6)
    await sql.execute("update foliot.rollups set at = at - interval '3 days' where step = 60")
    await sql.execute(
        "update foliot.recorded set at = at - interval '3 days' where step = 60 and at < $1", start + HOUR
    )
    await fake_clock.advance(3600)
    await catch_up(recorder)
    assert await sql.fetchval("select count(*) from foliot.rollups where step = 60") == 0
    assert await sql.fetchval("select count(*) from foliot.recorded where at < $1", start - timedelta(days=2)) == 0
    assert await sql.fetchval("select count(*) from foliot.rollups where step = 3600") == 2


async def test_a_queue_s_depth_is_taken_and_only_the_busiest_queues_are_kept(
    recorder: Recorder, store: Store, fake_clock: FakeClock, sql: Any
) -> None:
    await sql.execute(
        "insert into foliot.runs (id, created_at, due_at, rank, state, queue, task)"
        " select gen_random_uuid(), now(), now(), n, 'ready', 'q' || (n % 60), 't' from generate_series(1, 200) n"
    )
    await recorder.run_once()
    found = await store.rollups.list_rollups(
        MINUTE, Namespace(), datetime(2020, 1, 1, tzinfo=UTC), fake_clock.now() + HOUR, by_queue=True
    )
    assert len(found) == 50
    assert sum(row.ready for row in found) == 20 * 4 + 30 * 3


async def test_recording_reads_the_runs_of_its_minute_alone(store: Store, sql: Any) -> None:
    at = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=30)
    for hours in range(1, 11):
        await sql.execute(ENDED, "succeeded", "mail", at - timedelta(hours=hours), 1, 5000)
    await sql.execute(ENDED, "succeeded", "mail", at, 1, 10)
    await sql.execute("vacuum analyze foliot.history")
    read = await rows_read(sql, "rollups", "record_minute", at, at + MINUTE, list(BOUNDS), 50, 1000)
    # The block ranges of the BRIN index hold some neighbours.
    assert read < 8_000
