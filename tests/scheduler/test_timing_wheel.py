from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from foliot.scheduler.timing_wheel import BITS, LEVELS, TimingWheel

REACH = 1 << (BITS * LEVELS)


@given(
    start=st.integers(0, 2**45),
    delays=st.lists(st.one_of(st.integers(-10, 600), st.integers(0, 200_000), st.integers(0, 2 * REACH)), max_size=60),
    steps=st.lists(st.one_of(st.integers(1, 700), st.integers(1, 300_000), st.integers(1, REACH)), max_size=40),
)
def test_entries_come_out_once_in_order_and_not_early(start: int, delays: list[int], steps: list[int]) -> None:
    wheel: TimingWheel[int] = TimingWheel(start)
    for number, delay in enumerate(delays):
        wheel.add(start + delay, number)
    waiting = {number: start + delay for number, delay in enumerate(delays)}
    now = start
    for step in [*steps, 4 * REACH]:
        now += step
        came = wheel.advance(now)
        assert [due for due, _ in came] == sorted(due for due, _ in came)
        expected = {number for number, due in waiting.items() if due <= now}
        assert {number for _, number in came} == expected
        assert len(came) == len(expected)
        for number in expected:
            del waiting[number]
        assert len(wheel) == len(waiting)
    assert not waiting


@given(st.integers(0, 2**40), st.lists(st.integers(1, 2 * REACH), min_size=1, max_size=30))
def test_the_next_stop_is_never_after_the_next_entry(start: int, delays: list[int]) -> None:
    wheel: TimingWheel[int] = TimingWheel(start)
    for delay in delays:
        wheel.add(start + delay, delay)
    found = wheel.next_due()
    assert found is not None
    assert start < found <= start + min(delays)


def test_adding_while_it_turns_keeps_the_order() -> None:
    chance = random.Random(3)
    wheel: TimingWheel[int] = TimingWheel(1000)
    now, seen, added = 1000, 0, 0
    for _ in range(3000):
        for _ in range(chance.randrange(4)):
            wheel.add(now + chance.randrange(1, 70_000), 0)
            added += 1
        now += chance.randrange(1, 300)
        came = wheel.advance(now)
        assert all(now - 300 < due <= now for due, _ in came)
        seen += len(came)
    assert seen + len(wheel) == added
