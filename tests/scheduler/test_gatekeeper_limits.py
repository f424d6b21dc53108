"""Runs with a concurrency key and a rate: a run that waits for one of them blocks nobody under the other."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.scheduler.gatekeeper import Gatekeeper
from foliot.store.store import Store
from tests.scheduler.test_gatekeeper import claim, end
from tests.support.fake_clock import FakeClock
from tests.support.plans import rows_read

MANY = 3000


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def gatekeeper(store: Store, fake_clock: FakeClock, events: EventBus) -> Gatekeeper:
    return Gatekeeper(store=store, clock=fake_clock, events=events)


def limits(
    key: str | None = None, most: int = 1, rate_key: str | None = None, rate: int = 1, seconds: float = 60
) -> str:
    concurrency = f'"concurrency": {{"key": "{key}", "limit": {most}, "at_limit": "wait"}}' if key else ""
    pace = f'"rate": {{"key": "{rate_key}", "limit": {rate}, "period_seconds": {seconds}}}' if rate_key else ""
    return "{" + ", ".join(part for part in (concurrency, pace) if part) + "}"


async def insert(store: Store, options: str, number: int = 1) -> list[UUID]:
    runs = [NewRun(id=new_id(), task="t", queue="q", options=options) for _ in range(number)]
    await store.run_inserts.insert_runs(runs)
    return [run.id for run in runs]


async def let_pass(gatekeeper: Gatekeeper) -> None:
    """Runs the gatekeeper until no further run is admitted."""
    for _ in range(1000):
        if await gatekeeper.run_once() > 0:
            break
    await gatekeeper.run_once()


async def started(store: Store, gatekeeper: Gatekeeper) -> list[UUID]:
    await let_pass(gatekeeper)
    return [one.run_id for one in await claim(store, 1000)]


@pytest.mark.parametrize("blocked", [1, 5, MANY])
@pytest.mark.parametrize("behind", ["another rate", "no rate"])
async def test_a_run_that_waits_for_its_rate_occupies_no_concurrency(
    store: Store, gatekeeper: Gatekeeper, blocked: int, behind: str
) -> None:
    (first,) = await insert(store, limits("k", 2, "slow"))
    assert await started(store, gatekeeper) == [first]
    await insert(store, limits("k", 2, "slow"), blocked)
    free = await insert(store, limits("k", 2, "fast" if behind == "another rate" else None, 100), 3)
    assert await started(store, gatekeeper) == free[:1], "the next in line of those whose rate allows it"
    assert await started(store, gatekeeper) == [], "both places are taken"


@pytest.mark.parametrize("blocked", [1, 5, MANY])
@pytest.mark.parametrize("behind", ["another key", "no key"])
async def test_a_run_that_waits_for_concurrency_uses_nothing_of_its_rate(
    store: Store, gatekeeper: Gatekeeper, blocked: int, behind: str
) -> None:
    (first,) = await insert(store, limits("full", 1, "r", 2))
    assert await started(store, gatekeeper) == [first]
    await insert(store, limits("full", 1, "r", 2), blocked)
    free = await insert(store, limits("other" if behind == "another key" else None, 100, "r", 2), 3)
    assert await started(store, gatekeeper) == free[:1]
    assert await started(store, gatekeeper) == [], "the rate is used up"


async def test_runs_that_wait_for_a_rate_pass_in_order(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock
) -> None:
    slow = await insert(store, limits("k", 1, "slow", 1, 60), 3)
    fast = await insert(store, limits("k", 1, "fast", 1000, 60), 30)
    order = []
    for _ in range(20):
        await let_pass(gatekeeper)
        claims = await claim(store, 10)
        assert len(claims) == 1
        order.append(claims[0].run_id)
        await end(store, claims)
        await fake_clock.advance(20)
    assert [order.index(run_id) for run_id in slow] == [0, 3, 6]
    assert [run_id for run_id in order if run_id in fast] == fast[:17], "in order among themselves"


async def test_many_rates_starve_no_run(store: Store, gatekeeper: Gatekeeper) -> None:
    for number in range(250):
        (one,) = await insert(store, limits("k", 1000, f"rate {number:03}"))
    assert len(await started(store, gatekeeper)) == 250
    for number in range(250):
        await insert(store, limits("k", 1000, f"rate {number:03}"))
    (one,) = await insert(store, limits("k", 1000, "zzz", 10))
    found: list[UUID] = []
    for _ in range(50):
        found += await started(store, gatekeeper)
        if found:
            break
    assert found == [one]


async def test_limits_hold_and_capacity_is_used_for_random_loads(
    store: Store, gatekeeper: Gatekeeper, fake_clock: FakeClock, sql: Any
) -> None:
    """Limits are never exceeded, no run passes wrongly, and no run waits that could pass."""
    dice = random.Random(7)
    keys, rates = {"a": 1, "b": 3, "c": 50}, {"x": (2, 10.0), "y": (20, 5.0), "z": (1, 100.0)}
    held: dict[UUID, tuple[str | None, str | None]] = {}
    for _ in range(300):
        key, rate = dice.choice([*keys, None]), dice.choice([*rates, None])
        if key is None and rate is None:
            continue
        options = limits(key, keys.get(key or "", 1), rate, *rates.get(rate or "", (1, 1.0)))
        (run_id,) = await insert(store, options)
        held[run_id] = (key, rate)
    under_way: dict[UUID, Any] = {}
    starts: dict[str, list[float]] = {rate: [] for rate in rates}
    for _ in range(40):
        await let_pass(gatekeeper)
        now = fake_clock.monotonic()
        for one in await claim(store, 1000):
            under_way[one.run_id] = one
            _, rate = held[one.run_id]
            if rate is not None:
                starts[rate].append(now)
        open_places = Counter(held[run_id][0] for run_id in under_way)
        recent = {rate: sum(at > now - rates[rate][1] for at in starts[rate]) for rate in rates}
        assert all(open_places[key] <= keys[key] for key in keys)
        assert all(recent[rate] <= rates[rate][0] for rate in rates)
        for row in await sql.fetch("select id from foliot.runs where held_by = 'limit'"):
            key, rate = held[row[0]]
            has_place = key is None or open_places[key] < keys[key]
            is_in_time = rate is None or recent[rate] < rates[rate][0]
            assert not (has_place and is_in_time), f"{key} {rate} could pass"
        ended = dice.sample(sorted(under_way), len(under_way) // 2)
        await end(store, [under_way.pop(run_id) for run_id in ended])
        await fake_clock.advance(dice.choice([0.5, 3.0, 11.0]))


async def test_blocked_runs_are_not_read_repeatedly(store: Store, gatekeeper: Gatekeeper, sql: Any) -> None:
    await insert(store, limits("k", 5, "slow"), MANY)
    await insert(store, limits("k", 5))
    assert len(await started(store, gatekeeper)) == 2
    await sql.execute("vacuum analyze")
    await sql.execute(
        "insert into foliot.turns (kind, key, look_at) values ('concurrency', 'k', '-infinity'), ('rate', 'slow', "
        "'-infinity')"
    )
    now = gatekeeper.clock.sql_now()
    assert await rows_read(sql, "limits", "admit_runs", now, 500, 200, 20, "", "") < 300
