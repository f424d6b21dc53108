"""Services start, stop, wake and back off, in any order and from any number of callers. A supervisor keeps their
order."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import pytest

from foliot import service as module
from foliot.clock import Clock, SystemClock
from foliot.events import Event, EventBus, ServiceFailed
from foliot.service import Service, Supervisor
from tests.support.fake_clock import FakeClock

CALLERS, CALLS = 12, 40


class Probe(Service):
    """Counts its turns, and notices when two of its loops run at the same time."""

    def __init__(self, *, clock: Clock, events: EventBus, delay: float | None = 10.0, label: str = "Probe") -> None:
        super().__init__(clock=clock, events=events)
        self.delay = delay
        self.journal: list[str] = []
        self.turns = 0
        self.alive = 0
        self.most_alive = 0
        self.turned = asyncio.Event()
        self.start_error: BaseException | None = None
        self.turn_errors: list[BaseException] = []
        self.stop_error: Exception | None = None
        self._label = label

    @property
    def name(self) -> str:
        return self._label

    async def on_start(self) -> None:
        self.alive += 1
        self.most_alive = max(self.most_alive, self.alive)
        await asyncio.sleep(0)
        if self.start_error is not None:
            self.alive -= 1
            raise self.start_error
        self.journal.append("start")

    async def run_once(self) -> float | None:
        self.turns += 1
        self.turned.set()
        await asyncio.sleep(0)
        if self.turn_errors:
            raise self.turn_errors.pop(0)
        return self.delay

    async def on_stop(self) -> None:
        await asyncio.sleep(0)
        self.alive -= 1
        self.journal.append("stop")
        if self.stop_error is not None:
            raise self.stop_error


@pytest.fixture
def probe(fake_clock: FakeClock, events: EventBus) -> Probe:
    return Probe(clock=fake_clock, events=events)


async def settle() -> None:
    """Runs everything that can run without moving the clock."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_service_takes_its_turns_until_it_is_stopped(probe: Probe, fake_clock: FakeClock) -> None:
    await probe.start()
    await settle()
    assert probe.turns == 1
    await fake_clock.advance(30)
    assert probe.turns == 4
    await probe.stop()
    await fake_clock.advance(30)
    assert probe.turns == 4
    assert probe.journal == ["start", "stop"]


async def test_no_delay_starts_the_next_turn_at_once(probe: Probe) -> None:
    probe.delay = 0
    await probe.start()
    while probe.turns < 100:
        await asyncio.sleep(0)
    await probe.stop()


async def test_none_waits_for_a_wake(probe: Probe, fake_clock: FakeClock) -> None:
    probe.delay = None
    await probe.start()
    await fake_clock.advance(1_000_000)
    assert probe.turns == 1
    probe.wake()
    await settle()
    assert probe.turns == 2
    await probe.stop()


async def test_a_wake_shortens_the_wait(probe: Probe, fake_clock: FakeClock) -> None:
    await probe.start()
    await settle()
    probe.wake()
    await settle()
    assert (probe.turns, fake_clock.monotonic()) == (2, 0)
    await probe.stop()


async def test_a_wake_during_a_turn_is_not_lost(probe: Probe) -> None:
    await probe.start()
    await probe.turned.wait()
    assert probe.turns == 1
    probe.wake()
    await settle()
    assert probe.turns == 2
    await probe.stop()


async def test_a_stop_does_not_wait_for_the_next_turn(probe: Probe, fake_clock: FakeClock) -> None:
    await probe.start()
    await settle()
    await probe.stop()
    assert fake_clock.monotonic() == 0


async def test_a_second_start_and_a_second_stop_change_nothing(probe: Probe) -> None:
    await probe.start()
    await probe.start()
    await probe.stop()
    await probe.stop()
    assert probe.journal == ["start", "stop"]


async def test_a_stop_before_any_start_does_not_prevent_it(probe: Probe) -> None:
    await probe.stop()
    await probe.start()
    await settle()
    assert probe.turns == 1
    await probe.stop()


async def test_a_stopped_service_can_be_started_again(probe: Probe) -> None:
    for _ in range(3):
        await probe.start()
        await probe.stop()
    assert probe.journal == ["start", "stop"] * 3


async def test_a_start_during_a_stop_waits_and_starts_again(probe: Probe) -> None:
    await probe.start()
    await asyncio.gather(probe.stop(), probe.start(), probe.stop(), probe.start())
    await probe.stop()
    assert probe.most_alive == 1
    assert probe.alive == 0
    assert probe.journal.count("start") == probe.journal.count("stop") >= 2


@pytest.mark.parametrize("seed", range(30))
async def test_concurrent_starts_stops_and_wakes_never_make_two_loops(events: EventBus, seed: int) -> None:
    probe = Probe(clock=SystemClock(), events=events, delay=0.001)
    dice = random.Random(seed)

    async def caller() -> None:
        for _ in range(CALLS):
            match dice.randrange(6):
                case 0 | 1:
                    probe.start_error = dice.choice([None, None, None, ConnectionRefusedError()])
                    with suppress(ConnectionRefusedError):
                        await probe.start()
                case 2 | 3:
                    await probe.stop()
                case 4:
                    probe.wake()
                case _:
                    probe.stop_soon()
            for _ in range(dice.randrange(4)):
                await asyncio.sleep(0)

    before = asyncio.all_tasks()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    await probe.stop()
    assert asyncio.all_tasks() == before
    assert (probe.alive, probe.most_alive) == (0, 1)
    assert probe.journal == ["start", "stop"] * (len(probe.journal) // 2)
    assert len(probe.journal) > CALLERS


async def test_cancelled_callers_do_not_disturb_the_service(events: EventBus) -> None:
    probe = Probe(clock=SystemClock(), events=events, delay=0.001)
    dice = random.Random(1)

    async def impatient() -> None:
        for _ in range(CALLS):
            waiting = asyncio.create_task(dice.choice([probe.start, probe.stop])())
            for _ in range(dice.randrange(5)):
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])

    await asyncio.gather(*(impatient() for _ in range(CALLERS)))
    await probe.start()
    await probe.stop()
    assert (probe.alive, probe.most_alive) == (0, 1)


async def test_a_failed_start_raises_in_every_caller_and_can_be_repeated(probe: Probe) -> None:
    probe.start_error = ConnectionRefusedError("not yet")
    first, second = await asyncio.gather(probe.start(), probe.start(), return_exceptions=True)
    assert first is second is probe.start_error
    await probe.stop()
    probe.start_error = None
    await probe.start()
    await settle()
    assert probe.turns == 1
    await probe.stop()
    assert (probe.alive, probe.journal) == (0, ["start", "stop"])


async def test_a_failed_turn_is_reported_and_repeated_after_a_back_off(
    probe: Probe, fake_clock: FakeClock, events: EventBus, seen: list[Event]
) -> None:
    probe.turn_errors = [ValueError("bad turn")]
    await probe.start()
    await settle()
    (failure,) = seen
    assert isinstance(failure, ServiceFailed)
    assert (failure.service, failure.error) == ("Probe", "ValueError: bad turn")
    assert probe.turns == 1
    await fake_clock.advance(2 * module.FIRST_BACKOFF_SECONDS)
    assert probe.turns == 2
    assert len(seen) == 1
    await probe.stop()


async def test_the_back_off_grows_to_a_limit_and_resets_after_success(
    probe: Probe, fake_clock: FakeClock, seen: list[Event]
) -> None:
    probe.turn_errors = [ValueError()] * 12
    await probe.start()
    await settle()
    await fake_clock.advance(12 * module.LAST_BACKOFF_SECONDS)
    waits = [event.retry_in_seconds for event in seen if isinstance(event, ServiceFailed)]
    assert len(waits) == 12
    assert waits[0] <= 2 * module.FIRST_BACKOFF_SECONDS
    assert all(module.LAST_BACKOFF_SECONDS / 2 <= wait <= module.LAST_BACKOFF_SECONDS for wait in waits[6:])
    probe.turn_errors = [ValueError()]
    probe.wake()
    await settle()
    assert isinstance(seen[-1], ServiceFailed)
    assert seen[-1].retry_in_seconds <= 2 * module.FIRST_BACKOFF_SECONDS
    await probe.stop()


async def test_a_stop_does_not_wait_for_the_back_off(probe: Probe, fake_clock: FakeClock) -> None:
    probe.turn_errors = [ValueError()]
    await probe.start()
    await settle()
    await probe.stop()
    assert (probe.turns, fake_clock.monotonic()) == (1, 0)


async def test_a_turn_that_awaits_a_cancelled_future_fails_like_any_other(probe: Probe, seen: list[Event]) -> None:
    """A future cancelled elsewhere raises CancelledError here, too, and must not end the loop unnoticed."""
    probe.turn_errors = [asyncio.CancelledError()]
    await probe.start()
    await settle()
    assert [event.error for event in seen if isinstance(event, ServiceFailed)] == ["CancelledError: "]
    await probe.stop()
    assert probe.journal == ["start", "stop"]


async def test_an_error_in_a_stop_raises_in_the_caller_and_the_service_is_stopped(probe: Probe) -> None:
    probe.stop_error = OSError("disk full")
    await probe.start()
    with pytest.raises(OSError, match="disk full"):
        await probe.stop()
    probe.stop_error = None
    await probe.start()
    await probe.stop()
    assert probe.alive == 0


class Team:
    """Services that record their starts and stops in one journal."""

    def __init__(self, clock: Clock, events: EventBus) -> None:
        self.journal: list[str] = []
        self.services = [_Member(name, self.journal, clock=clock, events=events) for name in "abc"]
        self.supervisor = Supervisor(self.services)


class _Member(Probe):
    def __init__(self, label: str, team_journal: list[str], *, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events, label=label)
        self._team_journal = team_journal

    async def on_start(self) -> None:
        await super().on_start()
        self._team_journal.append(f"+{self.name}")

    async def on_stop(self) -> None:
        self._team_journal.append(f"-{self.name}")
        await super().on_stop()


@pytest.fixture
def team(fake_clock: FakeClock, events: EventBus) -> Team:
    return Team(fake_clock, events)


async def test_a_supervisor_starts_in_order_and_stops_in_reverse(team: Team) -> None:
    await team.supervisor.start()
    await team.supervisor.stop()
    assert team.journal == ["+a", "+b", "+c", "-c", "-b", "-a"]


async def test_a_failed_start_stops_the_services_started_before(team: Team) -> None:
    team.services[2].start_error = ConnectionRefusedError("no c today")
    with pytest.raises(ConnectionRefusedError, match="no c today"):
        await team.supervisor.start()
    assert team.journal == ["+a", "+b", "-b", "-a"]


async def test_a_service_that_fails_to_stop_does_not_keep_the_others_running(team: Team) -> None:
    await team.supervisor.start()
    team.services[1].stop_error = OSError("b is stuck")
    with pytest.raises(OSError, match="b is stuck"):
        await team.supervisor.stop()
    assert team.journal == ["+a", "+b", "+c", "-c", "-b", "-a"]
    assert all(member.alive == 0 for member in team.services)


class Busy(Service):
    """A service with two chores, one of which fails while `is_broken` is true."""

    def __init__(self, *, clock: FakeClock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self.is_broken = True
        self.done: list[str] = []

    async def run_once(self) -> float:
        return await self.each(self._fragile, self._solid)

    async def _fragile(self) -> float:
        self.done.append("tried")
        if self.is_broken:
            raise ValueError("broken")
        return 60.0

    async def _solid(self) -> float:
        self.done.append("solid")
        return 5.0


async def test_a_chore_that_fails_backs_off_by_itself(
    fake_clock: FakeClock, events: EventBus, seen: list[Event]
) -> None:
    busy = Busy(clock=fake_clock, events=events)
    delays = []
    for _ in range(3):
        delays.append(await busy.run_once())
        await busy.run_once()  # it is not tried before its time
        await fake_clock.advance(delays[-1] + 0.001)
    assert busy.done.count("tried") == 3
    assert busy.done.count("solid") == 6
    assert delays[0] < 1 < delays[0] * 16
    assert [(event.service, event.error) for event in seen if isinstance(event, ServiceFailed)] == [
        ("Busy", "fragile: ValueError: broken")
    ] * 3
    busy.is_broken = False
    assert await busy.run_once() == 5.0
    assert busy.done[-2:] == ["tried", "solid"]


async def test_a_failure_is_reported_and_the_next_chore_runs(
    fake_clock: FakeClock, events: EventBus, seen: list[Event]
) -> None:
    async def halved(number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number // 2

    busy = Busy(clock=fake_clock, events=events)
    assert [await busy.attempt(f"halve {number}", halved(number), None) for number in (2, 3, 4)] == [1, None, 2]
    assert [event.error for event in seen if isinstance(event, ServiceFailed)] == ["halve 3: ValueError: odd"]
