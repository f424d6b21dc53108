"""Cursors follow changed rules: an edited calendar, or other rules of time zones. No tick is lost or duplicated."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.events import CursorsReplanned, Event
from foliot.model.calendar import CalendarDays
from foliot.model.job import RecurringJob
from foliot.scheduler.shard_keeper import ShardKeeper
from foliot.store.store import Store
from foliot.triggers.zones import rules_fingerprint
from tests.support.fake_clock import FakeClock
from tests.support.jobs import make_job
from tests.support.schedulers import Node, outcomes


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    """It is Sunday, 2026-03-01, 12:00 UTC."""
    return fake_clock


async def next_at(store: Store, job: RecurringJob) -> datetime | None:
    found = await store.jobs.get_job(job.id, "")
    assert found is not None
    return found.next_at


async def test_days_that_a_calendar_skips_get_one_row_each(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    await store.calendars.put_calendar("weekends", CalendarDays(weekdays=("SAT", "SUN")))
    job = await make_job(
        store, cron="0 */6 * * *", overlap="allow_all", calendar="weekends", calendar_days=("SAT", "SUN")
    )
    assert job.next_at == datetime(2026, 3, 1, 18, tzinfo=UTC)
    for _ in range(30):
        await node.pass_time(6 * 3600)
    ticks = (await store.ticks.list_ticks(job.id, 200))[::-1]
    excluded = [
        (tick.tick_at.day, tick.tick_at.hour, tick.until_at and tick.until_at.hour)
        for tick in ticks
        if tick.outcome == "excluded"
    ]
    assert excluded == [(1, 18, None), (7, 0, 18), (8, 0, 18)]
    assert [tick.tick_at.day for tick in ticks if tick.outcome == "ready"] == [
        *[day for day in (2, 3, 4, 5, 6) for _ in range(4)],
        9,
    ]


async def test_an_edited_calendar_applies_from_the_next_tick_on(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("MON",)))
    job = await make_job(store, cron="0 9 * * *", overlap="allow_all", calendar="holidays", calendar_days=("MON",))
    await node.pass_time(86_400)
    assert await outcomes(store, job) == ["excluded"]
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("WED",)))
    await node.pass_time(86_400)
    await node.pass_time(86_400)
    assert await outcomes(store, job) == ["excluded", "ready", "excluded"]


async def test_ticks_that_a_calendar_moves_follow_its_edits(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, seen: list[Event]
) -> None:
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("MON",)))
    monday, tuesday = datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 3, 9, tzinfo=UTC)
    job = await make_job(store, cron="0 9 2 * *", calendar="holidays", calendar_days=("MON",), on_excluded="move")
    assert await next_at(store, job) == tuesday
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("TUE",)))
    await node.replanner.run_once()
    assert await next_at(store, job) == monday
    assert [event for event in seen if isinstance(event, CursorsReplanned)] == [CursorsReplanned(1)]
    await node.pass_time(86_400)
    assert await outcomes(store, job) == ["ready"]
    # Fired ticks stay fired when the calendar changes, and moved ticks may be moved further.
    other = await make_job(
        store,
        cron="0 9 2 * *",
        calendar="holidays",
        calendar_days=("MON",),
        on_excluded="move",
        now=monday - timedelta(1),
    )
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("MON", "TUE")))
    await node.replanner.run_once()
    assert await next_at(store, job) == datetime(2026, 4, 2, 9, tzinfo=UTC)
    assert await next_at(store, other) == datetime(2026, 3, 4, 9, tzinfo=UTC)
    assert await store.replanning.stale_jobs(10) == []


async def test_a_cursor_from_other_rules_moves_to_the_same_local_time(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    await node.replanner.on_start()
    await node.replanner.run_once()
    daily = await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin")
    often = await make_job(store, cron="*/5 * * * *", timezone="Europe/Berlin", overlap="allow_all")
    assert daily.utc_offset == 3600
    # As computed by a node for which Berlin is two hours ahead of UTC.
    await sql.execute(
        "update foliot.jobs set next_at = '2026-03-02 07:00Z', fire_at = '2026-03-02 07:00Z', utc_offset = 7200 where "
        "id = $1",
        daily.id,
    )
    await sql.execute("update foliot.jobs set utc_offset = 7200 where id = $1", often.id)
    await node.replanner.run_once()
    assert (await next_at(store, daily)) == datetime(2026, 3, 2, 7, tzinfo=UTC)
    # That node was the last to check these shards.
    await sql.execute("update foliot.shards set zones = 'others'")
    await node.replanner.run_once()
    assert await next_at(store, daily) == daily.next_at == datetime(2026, 3, 2, 8, tzinfo=UTC)
    assert await next_at(store, often) == often.next_at
    assert await sql.fetchval("select array_agg(distinct zones) from foliot.shards") == [rules_fingerprint()]


async def test_all_jobs_of_a_node_are_checked_in_batches(
    store: Store, keeper: ShardKeeper, node: Node, sql: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.scheduler.replanner.LOOKED_THROUGH", 2)
    await node.replanner.on_start()
    # A page without jobs to check is not the end.
    plain = [await make_job(store, every="1h") for _ in range(5)]
    jobs = [await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin") for _ in range(5)]
    await sql.execute(
        "update foliot.jobs set next_at = '2026-03-02 07:00Z', fire_at = '2026-03-02 07:00Z', utc_offset = 7200 where "
        "id = any ($1)",
        [job.id for job in jobs],
    )
    await node.replanner.run_once()
    assert {await next_at(store, job) for job in jobs} == {datetime(2026, 3, 2, 8, tzinfo=UTC)}
    assert [await next_at(store, job) for job in plain] == [job.next_at for job in plain]
    assert await sql.fetchval("select array_agg(distinct zones) from foliot.shards") == [rules_fingerprint()]


async def test_a_cursor_from_other_rules_is_corrected_no_later_than_its_tick(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    early = await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin", overlap="allow_all")
    late = await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin", overlap="allow_all")
    for job, hour, offset in ((early, 7, 7200), (late, 9, 0)):
        at = datetime(2026, 3, 2, hour, tzinfo=UTC)
        await sql.execute(
            "update foliot.jobs set next_at = $2, fire_at = $2, utc_offset = $3 where id = $1", job.id, at, offset
        )
    for _ in range(48):
        await node.pass_time(3600)
    # The tick that has passed in the meantime is late, and keeps the instant under which it was computed.
    for job, hour in ((early, 8), (late, 9)):
        ticks = [tick.tick_at for tick in await store.ticks.list_ticks(job.id, 10)]
        assert ticks == [datetime(2026, 3, 3, 8, tzinfo=UTC), datetime(2026, 3, 2, hour, tzinfo=UTC)]


async def test_a_job_without_ticks_under_its_calendar_continues_when_the_calendar_is_corrected(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node
) -> None:
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("SUN",)))
    monday, end = datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 12, tzinfo=UTC)
    job = await make_job(
        store, times=(monday,), end_at=end, calendar="holidays", calendar_days=("SUN",), on_excluded="move"
    )
    assert await next_at(store, job) == monday
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("MON",)))
    await node.replanner.run_once()
    assert await next_at(store, job) is None
    await store.calendars.put_calendar("holidays", CalendarDays(weekdays=("SUN",)))
    await node.replanner.run_once()
    await node.pass_time(86_400)
    assert await outcomes(store, job) == ["ready"]


async def test_other_jobs_follow_new_rules_of_their_zones(
    store: Store, fake_clock: FakeClock, keeper: ShardKeeper, node: Node, sql: Any
) -> None:
    good = await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin")
    bad = await make_job(store, cron="0 9 * * *", timezone="Europe/Berlin")
    # As computed by another node with other rules; and one job is in a zone that this node does not know.
    await sql.execute(
        "update foliot.jobs set next_at = next_at - interval '1 hour', fire_at = fire_at - interval '1 hour', "
        "utc_offset = 7200"
    )
    await sql.execute(
        """update foliot.jobs set schedule = schedule || '{"timezone": "Europe/Atlantis"}' where id = $1""", bad.id
    )
    await keeper.run_once()
    await node.replanner.on_start()
    await node.replanner.run_once()
    found = await store.jobs.get_job(good.id, "")
    assert found is not None
    assert found.next_at == good.next_at
