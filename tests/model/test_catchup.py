"""Due ticks are planned one plan at a time, until the cursor is in the future."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.calendar import CalendarDays, calendar_of
from foliot.model.catchup import Note, Plan, plan
from foliot.model.schedule import Schedule, timetable_of
from foliot.triggers.base import to_datetime
from foliot.triggers.calendar import Calendar

NOW = 1_800_000_000
DAY = 86_400
YEAR = 365 * DAY
WEEKENDS = calendar_of(CalendarDays(timezone="Europe/Berlin", weekdays=("SAT", "SUN")))


def settle(
    schedule: Schedule, first: int, now: int, calendar: Calendar | None = None
) -> tuple[list[int], list[Note], int | None]:
    """Carries out plans until no tick is due. Returns the fired ticks, the notes and the cursor."""
    timetable = timetable_of(schedule, "", 0, calendar)
    fired: list[int] = []
    notes: list[Note] = []
    cursor: int | None = first
    for _ in range(20_000):
        if cursor is None or cursor > now:
            return fired, notes, cursor
        planned: Plan = plan(schedule, timetable, cursor, now)
        assert planned.next_tick is None or planned.next_tick > cursor
        if planned.fire is not None:
            assert planned.fire == cursor
            fired.append(planned.fire)
        notes.extend(planned.notes)
        cursor = planned.next_tick
    raise AssertionError("it does not settle")


def minutely(**fields: Any) -> Schedule:
    return Schedule(every="1m", **fields)


def test_a_tick_within_its_grace_fires_even_when_nothing_is_caught_up() -> None:
    fired, notes, cursor = settle(minutely(catchup="none"), NOW, NOW + 59)
    assert (fired, notes, cursor) == ([NOW], [], NOW + 60)


def test_catchup_none_notes_all_missed_ticks_together() -> None:
    first = NOW - 3600
    fired, notes, cursor = settle(minutely(catchup="none"), first, NOW)
    assert notes == [Note("missed", first, NOW - 120)]
    assert fired == [NOW - 60, NOW]
    assert cursor == NOW + 60


def test_catchup_latest_runs_the_last_missed_tick_and_notes_the_others() -> None:
    first = NOW - 3600
    fired, notes, _ = settle(minutely(), first, NOW)
    assert notes == [Note("superseded", first, NOW - 180)]
    assert fired == [NOW - 120, NOW - 60, NOW]


def test_catchup_all_runs_every_missed_tick_oldest_first() -> None:
    first = NOW - 3600
    fired, notes, _ = settle(minutely(catchup="all"), first, NOW)
    assert fired == list(range(first, NOW + 1, 60))
    assert notes == []


def test_catchup_all_runs_only_the_latest_ticks_up_to_its_maximum() -> None:
    first = NOW - 3600
    fired, notes, _ = settle(minutely(catchup="all", catchup_max=10), first, NOW)
    assert len(fired) == 12
    assert notes == [Note("missed", first, fired[0] - 60)]


def test_ticks_outside_the_window_are_missed_and_others_superseded() -> None:
    first = NOW - 3 * DAY
    fired, notes, _ = settle(minutely(), first, NOW)
    assert notes == [Note("missed", first, NOW - DAY - 60), Note("superseded", NOW - DAY, NOW - 180)]
    assert fired == [NOW - 120, NOW - 60, NOW]


@pytest.mark.parametrize("catchup", ["none", "latest", "all"])
def test_years_of_missed_seconds_become_few_notes(catchup: Any) -> None:
    schedule = Schedule(every="1s", catchup=catchup, catchup_max=50)
    fired, notes, cursor = settle(schedule, NOW - 20 * YEAR, NOW)
    assert cursor == NOW + 1
    assert len(notes) <= 3
    assert len(fired) <= 61 + 50


@given(
    every=st.integers(1, 3 * DAY),
    age=st.integers(0, 10 * DAY),
    catchup=st.sampled_from(["none", "latest", "all"]),
    window=st.integers(0, 5 * DAY),
    most=st.integers(1, 20),
    calendar=st.sampled_from([None, WEEKENDS]),
)
def test_every_tick_is_fired_or_noted_exactly_once(
    every: int, age: int, catchup: Any, window: int, most: int, calendar: Calendar | None
) -> None:
    schedule = Schedule(every=str(every), catchup=catchup, catchup_window_seconds=window, catchup_max=most)
    trigger = timetable_of(schedule, "", 0, calendar).ticks
    first = trigger.next_after(NOW - age - 1)
    assert first is not None
    fired, notes, cursor = settle(schedule, first, NOW, calendar)
    assert cursor is not None
    assert calendar is None or not any(calendar.excludes_instant(tick) for tick in fired)
    covered = list(fired)
    for note in notes:
        tick: int | None = note.tick
        while tick is not None and tick <= (note.until or note.tick):
            covered.append(tick)
            tick = trigger.next_after(tick) if len(covered) < 50_000 else None
    if len(covered) < 50_000:
        assert sorted(covered) == [tick for tick in range(first, NOW + 1, every) if tick < cursor] or every % DAY == 0


def test_a_schedule_ends_at_its_end() -> None:
    schedule = Schedule(every="1m", end_at=to_datetime(NOW))
    fired, notes, cursor = settle(schedule, NOW, NOW + 30)
    assert (fired, notes, cursor) == ([NOW], [], None)
