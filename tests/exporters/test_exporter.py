"""Exporters send every ending, one process at a time, also after crashes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import pytest

from foliot.clock import Clock
from foliot.events import EventBus
from foliot.exporters.exporter import LEASE_SECONDS, LOOK_SECONDS, PAUSE_MAX_SECONDS, Exporter
from foliot.store.exports import Ending, Place
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import finish


class Recording(Exporter[Ending]):
    export_name = "test"

    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(store=store, clock=clock, events=events)
        self.sent: list[UUID] = []
        self.fails = False
        self.work_seconds = 0.0

    async def list_endings(self, after: Place, until: datetime, limit: int) -> Sequence[Ending]:
        return await self._store.exports.list_unexported(after, until, limit)

    async def export(self, endings: Sequence[Ending]) -> None:
        if self.fails:
            raise ConnectionError("the other system is away")
        self.sent += [ending.id for ending in endings]
        assert isinstance(self.clock, FakeClock)
        await self.clock.advance(self.work_seconds)


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def exporters(store: Store, fake_clock: FakeClock, events: EventBus) -> list[Recording]:
    return [Recording(store=store, clock=fake_clock, events=events) for _ in range(2)]


async def end(store: Store, clock: FakeClock, count: int) -> list[UUID]:
    """Runs that ended one after the other, before now."""
    ended = []
    for _ in range(count):
        ended.append(await finish(store))
        await clock.advance(0.1)
    return ended


async def test_a_new_export_begins_with_the_endings_from_then_on(
    store: Store, exporters: list[Recording], fake_clock: FakeClock
) -> None:
    await end(store, fake_clock, 2)
    assert await exporters[0].run_once() == LOOK_SECONDS
    ended = await end(store, fake_clock, 3)
    await exporters[0].run_once()
    assert exporters[0].sent == ended


async def test_one_process_exports_at_a_time_and_the_next_continues_when_it_stops(
    store: Store, exporters: list[Recording], fake_clock: FakeClock
) -> None:
    first, second = exporters
    await first.run_once()
    ended = await end(store, fake_clock, 2)
    await second.run_once()
    await first.run_once()
    assert (first.sent, second.sent) == (ended, [])
    await first.on_stop()
    later = await end(store, fake_clock, 2)
    await second.run_once()
    await first.run_once()
    assert (first.sent, second.sent) == (ended, later)


async def test_the_export_of_a_dead_process_continues_once_its_lease_has_expired(
    store: Store, exporters: list[Recording], fake_clock: FakeClock
) -> None:
    dead, second = exporters
    await dead.run_once()
    ended = await end(store, fake_clock, 2)
    await fake_clock.advance(LEASE_SECONDS - 0.3)
    await second.run_once()
    assert second.sent == []
    await fake_clock.advance(0.2)
    await second.run_once()
    assert second.sent == ended
    # The first one was only frozen: what it knows is outdated, and it may not move the place.
    place = await store.exports.take_export("test", second._owner, LEASE_SECONDS, fake_clock.now())
    assert place is not None
    assert not await store.exports.advance_export("test", dead._owner, place)


async def test_endings_that_could_not_be_sent_are_sent_again(
    store: Store, exporters: list[Recording], fake_clock: FakeClock
) -> None:
    exporter = exporters[0]
    await exporter.run_once()
    ended = await end(store, fake_clock, 2)
    exporter.fails = True
    with pytest.raises(ConnectionError):
        await exporter.run_once()
    exporter.fails = False
    await exporter.run_once()
    assert exporter.sent == ended


async def test_more_endings_than_one_look_reads_follow_at_once(
    store: Store, exporters: list[Recording], fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.exporters.exporter.ENDINGS", 2)
    await exporters[0].run_once()
    ended = await end(store, fake_clock, 5)
    assert [await exporters[0].run_once() for _ in range(3)] == [0.0, 0.0, LOOK_SECONDS]
    assert exporters[0].sent == ended


@pytest.mark.parametrize(
    ("work_seconds", "waited_seconds", "pause_seconds"),
    [(0.01, 0, 0.09), (0.01, 60, 0.045), (0.01, 480, 0.01), (1.0, 0, PAUSE_MAX_SECONDS)],
    ids=["a backlog", "a minute behind", "far behind", "a slow far end"],
)
async def test_work_on_a_backlog_is_followed_by_a_pause(
    store: Store,
    exporters: list[Recording],
    fake_clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    work_seconds: float,
    waited_seconds: float,
    pause_seconds: float,
) -> None:
    monkeypatch.setattr("foliot.exporters.exporter.ENDINGS", 2)
    exporter = exporters[0]
    await exporter.run_once()
    await end(store, fake_clock, 3)
    await fake_clock.advance(waited_seconds)
    exporter.work_seconds = work_seconds
    assert await exporter.run_once() == pytest.approx(pause_seconds, rel=0.02)
    assert await exporter.run_once() == LOOK_SECONDS
