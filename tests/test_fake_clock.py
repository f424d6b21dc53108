"""The clock of the tests: everything that is due has happened, in order, before `advance` returns."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from tests.support.fake_clock import FakeClock

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


async def started(*coroutines: object) -> list[asyncio.Task[object]]:
    """Tasks that have run up to their first wait."""
    tasks: list[asyncio.Task[object]] = [asyncio.ensure_future(coroutine) for coroutine in coroutines]  # type: ignore[call-overload]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_time_stands_still_until_it_is_moved(fake_clock: FakeClock) -> None:
    assert (fake_clock.now(), fake_clock.monotonic()) == (START, 0)
    await fake_clock.advance(1.5)
    assert (fake_clock.now(), fake_clock.monotonic()) == (START + timedelta(seconds=1.5), 1.5)
    assert fake_clock.sql_now() == fake_clock.now()


async def test_advance_wakes_due_sleepers_in_order_and_each_at_its_own_instant(fake_clock: FakeClock) -> None:
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await fake_clock.sleep(seconds)
        woken.append((name, fake_clock.monotonic()))

    tasks = await started(sleeper("third", 3), sleeper("first", 1), sleeper("second", 2), sleeper("too late", 5))
    await fake_clock.advance(4)
    assert woken == [("first", 1), ("second", 2), ("third", 3)]
    await fake_clock.advance(1)
    assert woken[3:] == [("too late", 5.0)]
    await asyncio.gather(*tasks)


async def test_sleepers_of_the_same_instant_wake_in_order(fake_clock: FakeClock) -> None:
    woken: list[int] = []

    async def sleeper(number: int) -> None:
        await fake_clock.sleep(1)
        woken.append(number)

    tasks = await started(*(sleeper(number) for number in range(5)))
    await fake_clock.advance(1)
    assert woken == [0, 1, 2, 3, 4]
    await asyncio.gather(*tasks)


async def test_a_sleeper_that_sleeps_again_is_woken_again(fake_clock: FakeClock) -> None:
    turns: list[float] = []

    async def loop() -> None:
        while True:
            await fake_clock.sleep(1)
            turns.append(fake_clock.monotonic())

    (looping,) = await started(loop())
    await fake_clock.advance(3.5)
    assert turns == [1, 2, 3]
    looping.cancel()


async def test_a_sleeper_that_was_cancelled_disturbs_nobody(fake_clock: FakeClock) -> None:
    gone, patient = await started(fake_clock.sleep(1), fake_clock.sleep(2))
    gone.cancel()
    await fake_clock.advance(2)
    assert gone.cancelled()
    assert patient.done()


async def test_a_sleep_of_zero_yields_to_other_tasks(fake_clock: FakeClock) -> None:
    order: list[str] = []

    async def other() -> None:
        order.append("other")

    task = asyncio.create_task(other())
    await fake_clock.sleep(0)
    order.append("sleeper")
    assert order == ["other", "sleeper"]
    await task


async def test_wait_is_true_when_the_event_comes_before_the_time(fake_clock: FakeClock) -> None:
    event = asyncio.Event()
    (waiting,) = await started(fake_clock.wait(event, 10))
    await fake_clock.advance(9)
    assert not waiting.done()
    event.set()
    assert await waiting is True
    assert fake_clock.monotonic() == 9


async def test_wait_is_false_when_the_time_limit_comes_first(fake_clock: FakeClock) -> None:
    (waiting,) = await started(fake_clock.wait(asyncio.Event(), 10))
    await fake_clock.advance(10)
    assert waiting.done()
    assert await waiting is False


async def test_wait_without_a_time_limit_waits_for_the_event_alone(fake_clock: FakeClock) -> None:
    event = asyncio.Event()
    (waiting,) = await started(fake_clock.wait(event, None))
    await fake_clock.advance(1_000_000)
    assert not waiting.done()
    event.set()
    assert await waiting is True


async def test_wait_for_a_set_event_returns_at_once(fake_clock: FakeClock) -> None:
    event = asyncio.Event()
    event.set()
    assert await fake_clock.wait(event, 10) is True


async def test_a_cancelled_wait_leaves_nothing_behind(fake_clock: FakeClock) -> None:
    before = asyncio.all_tasks()
    (waiting,) = await started(fake_clock.wait(asyncio.Event(), 10))
    waiting.cancel()
    await asyncio.wait([waiting])
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
