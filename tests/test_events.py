"""Events reach every subscriber immediately and in order, and describe themselves."""

from __future__ import annotations

import asyncio
import dataclasses
from uuid import UUID

import pytest

from foliot import events as module
from foliot.events import ChildStarted, Event, EventBus, RunsClaimed, RunsSubmitted, WorkerRegistered, describe

KINDS = [
    kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
]


def test_every_subscriber_sees_every_event_in_order_and_at_once(events: EventBus) -> None:
    journal: list[tuple[str, Event]] = []
    events.subscribe(lambda event: journal.append(("first", event)))
    events.subscribe(lambda event: journal.append(("second", event)))
    one, two = RunsClaimed(1), RunsClaimed(2)
    events.emit(one)
    assert journal == [("first", one), ("second", one)]
    events.emit(two)
    assert journal[2:] == [("first", two), ("second", two)]


def test_an_event_without_subscribers_is_ignored(events: EventBus) -> None:
    events.emit(RunsClaimed(1))


async def test_expect_returns_the_next_matching_event(events: EventBus) -> None:
    events.emit(RunsClaimed(7))
    with events.expect(RunsClaimed, lambda event: event.count > 5) as expected:
        events.emit(RunsSubmitted(9))
        events.emit(RunsClaimed(5))
        assert not expected.done()
        events.emit(RunsClaimed(8))
        events.emit(RunsClaimed(9))
        assert await expected == RunsClaimed(8)


async def test_an_expectation_unsubscribes_when_it_ends(events: EventBus) -> None:
    with events.expect(RunsClaimed) as expected:
        pass
    events.emit(RunsClaimed(1))
    with pytest.raises(asyncio.CancelledError):
        await expected


async def test_an_expectation_unsubscribes_after_an_error(events: EventBus) -> None:
    with pytest.raises(ZeroDivisionError), events.expect(RunsClaimed):
        raise ZeroDivisionError
    events.emit(RunsClaimed(1))
    assert events._subscribers == []


def test_a_description_holds_the_name_and_all_fields() -> None:
    worker_id = UUID(int=1)
    assert describe(WorkerRegistered(worker_id)) == ("WorkerRegistered", {"worker_id": worker_id})
    assert describe(ChildStarted("server", 17)) == ("ChildStarted", {"name": "server", "pid": 17})


@pytest.mark.parametrize("kind", KINDS)
def test_every_event_is_an_immutable_value(kind: type[Event]) -> None:
    blank = {field.name: 0 for field in dataclasses.fields(kind)}
    event = kind(**blank)
    assert event == kind(**blank)
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        setattr(event, next(iter(blank)), 1)
    assert event == kind(**blank)
