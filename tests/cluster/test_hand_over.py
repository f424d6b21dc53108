"""Scheduler nodes that die, freeze or sleep: how soon others fire for them, and that their late writes are refused."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.config import Config
from foliot.scheduler.planner import Planner
from foliot.store.shards import Epochs
from foliot.store.store import Store
from foliot.triggers.base import to_instant
from tests.support.jobs import make_job
from tests.support.processes import FoliotProcess
from tests.support.ticks import JobStory, assert_sound, fired_past
from tests.support.waiting import until

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

JOBS = 60
SECOND = timedelta(seconds=1)
# A lease of nine seconds, one second between two ticks, and two for the node that takes over.
WITHIN = 12 * SECOND
NOW = "select clock_timestamp()"
# A node that was stopped between parsing and executing a statement keeps a transaction open while it sleeps, but no
# lock.
AT_WORK = """
select exists (
    select from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and xact_start is not null
        and pid <> pg_backend_pid()
        and (backend_xid is not null or wait_event is distinct from 'ClientRead')
)
"""
GAPS = """
select max(following - created_at), max(following - $1) filter (where created_at <= $1) from (
    select r.created_at, lead(r.created_at) over (partition by r.job_id order by r.tick_at) as following
    from foliot.runs r join foliot.jobs j on j.id = r.job_id where j.shard = any ($2::bigint[])
) as fired
"""


@asynccontextmanager
async def two_nodes(database_url: str) -> AsyncIterator[tuple[FoliotProcess, FoliotProcess]]:
    """Two nodes with default settings, each with half of the shards."""
    around = {"FOLIOT_DATABASE_URL": database_url}
    async with (
        FoliotProcess("scheduler", environment=around) as first,
        FoliotProcess("scheduler", environment=around) as second,
    ):
        for node in (first, second):
            await node.event("ShardsChanged", count=50)
        yield first, second


async def owned(sql: Any, node: FoliotProcess) -> tuple[UUID, Epochs]:
    """The id of a node, and its shards with their epochs."""
    rows = await sql.fetch(
        "select n.id, s.id, s.epoch from foliot.schedulers n left join foliot.shards s on s.owner_id = n.id where "
        "n.name like $1",
        f"%:{node.pid}",
    )
    return rows[0][0], {shard: epoch for _, shard, epoch in rows if shard is not None}


async def lease_end(sql: Any, node: FoliotProcess) -> datetime:
    found: datetime = await sql.fetchval("select expires_at from foliot.schedulers where name like $1", f"%:{node.pid}")
    return found


async def renewed(sql: Any, node: FoliotProcess) -> datetime:
    """The end of the node's lease, right after a renewal."""
    before = await lease_end(sql, node)

    async def later() -> datetime | None:
        end = await lease_end(sql, node)
        return end if end > before else None

    found = await until(later)
    assert found is not None
    return found


async def reach(sql: Any, instant: datetime) -> None:
    await until(lambda: sql.fetchval("select clock_timestamp() >= $1", instant))


async def out_of_step(sql: Any, victim: FoliotProcess, other: FoliotProcess) -> None:
    """Returns at the worst moment to lose a node: it has just renewed its lease, and the other node checks just before
    that lease expires.

    Nodes that found each other by a hint renew in step. So the other one is delayed until it is nearly a whole turn out
    of step.
    """
    end = await renewed(sql, victim)
    turn = timedelta(seconds=Config().shard_renew_seconds)
    at = end - timedelta(seconds=Config().shard_ttl_seconds)
    await reach(sql, at + turn - timedelta(seconds=0.4))
    other.signal(signal.SIGSTOP)
    await reach(sql, at + 2 * turn - timedelta(seconds=0.2))
    other.signal(signal.SIGCONT)
    await renewed(sql, victim)


async def in_phase(sql: Any, start: datetime, seconds: float, *, period: int) -> datetime:
    """The next instant that is about this long after a tick."""

    async def look() -> datetime | None:
        now: datetime = await sql.fetchval(NOW)
        return now if seconds <= (now - start).total_seconds() % period < seconds + 0.2 else None

    found = await until(look)
    assert found is not None
    return found


async def make_jobs(store: Store, sql: Any) -> None:
    for _ in range(JOBS):
        await make_job(store, every="1s", overlap="allow_all", catchup="all", catchup_max=10_000)
    await until(lambda: sql.fetchval("select count(distinct job_id) = $1 from foliot.runs", JOBS))


async def measure(sql: Any, gone_at: datetime, shards: Epochs) -> tuple[timedelta, timedelta]:
    """For the jobs of these shards, the longest time between two ticks becoming runs, and the time from `gone_at` to
    the next run."""
    await until(lambda: fired_past(sql, gone_at + 10 * SECOND))
    longest, since = await sql.fetchrow(GAPS, gone_at, list(shards))
    return longest, since


async def busyness(sql: Any, gone_at: datetime, shards: Epochs) -> timedelta:
    """How much the machine delays a node that has lost nothing. A takeover takes a few steps, and each of them is
    delayed."""
    longest, _ = await sql.fetchrow(GAPS, gone_at, list(shards))
    return 5 * (longest - SECOND)  # type: ignore[no-any-return]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
async def test_every_job_of_a_lost_node_fires_again_within_twelve_seconds(
    number: signal.Signals, database_url: str, store: Store, sql: Any
) -> None:
    async with two_nodes(database_url) as nodes:
        await make_jobs(store, sql)
        victim, other = nodes
        await out_of_step(sql, victim, other)
        victim_id, epochs = await owned(sql, victim)
        assert len(epochs) == 50
        _, kept = await owned(sql, other)
        victim.signal(number)
        gone_at = await sql.fetchval(NOW)
        longest, since = await measure(sql, gone_at, epochs)
        within = WITHIN + await busyness(sql, gone_at, kept)
        assert since < within
        assert longest < within
        other_id, taken = await owned(sql, other)
        assert len(taken) == 100
        assert all(taken[shard] > epoch for shard, epoch in epochs.items())
        if number is signal.SIGSTOP:
            await assert_refused(store, sql, other, stale=(victim_id, epochs), current=(other_id, taken))
            victim.signal(signal.SIGCONT)
            await until(lambda: has_come_back(sql, victim, epochs))
        now = await sql.fetchval(NOW)
        await until(lambda: fired_past(sql, now))
        await assert_sound(sql)


async def assert_refused(
    store: Store, sql: Any, owner: FoliotProcess, *, stale: tuple[UUID, Epochs], current: tuple[UUID, Epochs]
) -> None:
    """A write under the old epochs changes nothing, although the jobs are due. The same write under the current epochs
    moves them."""
    shards = list(stale[1])
    jobs = await sql.fetchval("select count(*) from foliot.jobs where shard = any ($1::bigint[])", shards)

    async def write() -> bool:
        due, _ = await store.ticks.due_jobs(shards, JOBS, 0.0)
        planner = Planner(to_instant(await store.jobs.database_now()))
        firings = [planner.firing_of(job) for job in due]
        for scheduler_id, epochs in (stale, (stale[0], current[1]), (current[0], stale[1])):
            assert (await store.ticks.fire_ticks(scheduler_id, epochs, firings)).moved == frozenset()
        # If the owner was firing when it was stopped, the next tick shows it.
        return bool((await store.ticks.fire_ticks(*current, firings)).fired == jobs)

    async def is_stopped() -> bool:
        """Stopped between two ticks and without a lock, which it would keep."""
        await in_phase(sql, datetime(2026, 1, 1, tzinfo=UTC), 0.4, period=1)
        owner.signal(signal.SIGSTOP)
        if await sql.fetchval(AT_WORK):
            owner.signal(signal.SIGCONT)
            return False
        return True

    await until(is_stopped)
    await until(write)
    owner.signal(signal.SIGCONT)


async def has_come_back(sql: Any, node: FoliotProcess, before: Epochs) -> bool:
    """The node has its share of the shards again, all under new epochs."""
    _, epochs = await owned(sql, node)
    assert not set(epochs.items()) & set(before.items())
    return len(epochs) == 50


# Everything sleeps

PERIOD = 5
GRACE = 4
"""How late a tick may be: less than a period, and more than a busy machine needs to wake up."""


@pytest.mark.slow
async def test_each_catchup_policy_handles_a_sleep_of_all_nodes(database_url: str, store: Store, sql: Any) -> None:
    async with two_nodes(database_url) as nodes:
        # All nodes are in step, so the sleep begins and ends well away from all of their ticks.
        start = (await sql.fetchval(NOW)).replace(microsecond=0)
        every = {"every": f"{PERIOD}s", "overlap": "allow_all", "start_at": start}
        ids: dict[str, list[UUID]] = {"all": [], "latest": [], "none": []}
        for _ in range(8):
            ids["all"].append((await make_job(store, catchup="all", **every)).id)
            ids["latest"].append((await make_job(store, catchup="latest", grace_seconds=GRACE, **every)).id)
            ids["none"].append((await make_job(store, catchup="none", grace_seconds=GRACE, **every)).id)
        await until(lambda: fired_past(sql, start + timedelta(seconds=PERIOD)))
        await in_phase(sql, start, PERIOD / 2, period=PERIOD)
        for node in nodes:
            node.signal(signal.SIGSTOP)
        slept_at = await sql.fetchval(NOW)
        # Longer than the lease.
        await reach(sql, slept_at + timedelta(seconds=15))
        woken_at = await in_phase(sql, start, 0.2, period=PERIOD)
        for node in nodes:
            node.signal(signal.SIGCONT)
        await until(lambda: fired_past(sql, woken_at + timedelta(seconds=2 * PERIOD)))
        found = {story.job_id: story for story in await assert_sound(sql)}
    asleep = (to_instant(slept_at), to_instant(woken_at))
    for policy, reason in (("all", None), ("latest", "superseded"), ("none", "missed")):
        for job_id in ids[policy]:
            assert_slept_through(found[job_id], *asleep, reason=reason)


def assert_slept_through(story: JobStory, slept: int, woken: int, *, reason: str | None) -> None:
    """The ticks of the gap became runs, or one run and one note, or one note alone. The tick that was due at the
    wake-up is within its grace period."""
    missed = [tick for tick in range(story.cursor - 100 * PERIOD, story.cursor, PERIOD) if slept < tick < woken - GRACE]
    assert len(missed) >= 3
    ran = sorted(run.tick for run in story.runs if run.tick in missed)
    if reason is None:
        assert (ran, story.notes) == (missed, ())
        return
    (note,) = story.notes
    assert note.reason == reason
    if reason == "superseded":
        assert ran == [missed[-1]]
        assert (note.first, note.last) == (missed[0], missed[-2])
    else:
        assert ran == []
        assert (note.first, note.last) == (missed[0], missed[-1])


async def test_ticks_during_the_death_of_the_only_node_are_late_or_missed_but_not_overlapped(
    database_url: str, store: Store, sql: Any
) -> None:
    around = {"FOLIOT_DATABASE_URL": database_url}
    job = await make_job(store, every="1s", overlap="skip")
    noted = "select tick_at, noted_at, reason from foliot.ticks where tick_at > $1 order by tick_at"
    async with FoliotProcess("scheduler", environment=around) as node:
        await until(lambda: sql.fetchval("select exists (select from foliot.ticks)"))
        node.signal(signal.SIGKILL)
        died_at = await sql.fetchval(NOW)
    # The runs of the dead node have ended, so the first tick after its death becomes a run.
    await sql.execute("delete from foliot.runs")
    await until(lambda: sql.fetchval("select clock_timestamp() > $1", died_at + 4 * SECOND))
    async with FoliotProcess("scheduler", environment=around):
        made = await until(lambda: sql.fetchrow("select tick_at, due_at, created_at from foliot.runs"))
        overlapped = "select exists (select from foliot.ticks where tick_at > $1 and reason = 'overlap')"
        await until(lambda: sql.fetchval(overlapped, made["created_at"]))
    assert made["due_at"] == made["tick_at"]
    assert made["created_at"] - made["due_at"] > 3 * SECOND
    for tick_at, noted_at, reason in await sql.fetch(noted, made["tick_at"]):
        assert noted_at >= tick_at
        assert reason == ("missed" if tick_at < made["created_at"] else "overlap")
    assert (await store.ticks.list_ticks(job.id, 1))[0].outcome == "overlap"
