"""Runs that are not started by their `expires_at` end as skipped; waits for a signal time out."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.events import Event, EventBus, RunsExpired
from foliot.scheduler.expirer import INTERVAL_SECONDS, Expirer
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import insert


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def expirer(store: Store, fake_clock: FakeClock, events: EventBus) -> Expirer:
    return Expirer(store=store, clock=fake_clock, events=events)


async def test_a_run_that_has_expired_is_skipped_and_counted(
    store: Store, expirer: Expirer, fake_clock: FakeClock, sql: Any, seen: list[Event]
) -> None:
    expired = await insert(store, expires_at=fake_clock.now() + timedelta(seconds=60))
    await insert(store, expires_at=fake_clock.now() + timedelta(seconds=61))
    await fake_clock.advance(60)
    assert await expirer.run_once() == INTERVAL_SECONDS
    assert [tuple(row) for row in await sql.fetch("select id, state, reason from foliot.history")] == [
        (expired, "skipped", "expired")
    ]
    assert [event for event in seen if isinstance(event, RunsExpired)] == [RunsExpired(1)]


async def test_a_run_whose_wait_for_a_signal_times_out_becomes_ready(
    store: Store, expirer: Expirer, fake_clock: FakeClock
) -> None:
    run_id = await insert(store, options='{"signal": {"timeout_seconds": 60, "on_timeout": "fail"}}')
    await fake_clock.advance(61)
    await expirer.run_once()
    view = await store.runs.get_run(run_id)
    assert view is not None
    # The worker that claims it applies `on_timeout`.
    assert str(view.state) == "ready"
