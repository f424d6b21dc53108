"""When a worker claims runs, and when it lets other workers go first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import EventBus, RunsClaimed
from foliot.model.ids import new_id
from foliot.model.outcome import Attempted
from foliot.model.run import NewRun, RunOptions
from foliot.sdk.context import Context
from foliot.store.store import Store
from foliot.worker.attempts import Attempts
from foliot.worker.claimer import FIRST_HINT_DELAY_SECONDS, LAST_HINT_DELAY_SECONDS, Claimer
from foliot.worker.completer import Completer
from foliot.worker.declined_runs import DeclinedRuns
from foliot.worker.direct import HEARING_POLLS
from foliot.worker.holdings import Holdings
from foliot.worker.identity import WorkerIdentity
from foliot.worker.known_tasks import KnownTask
from tests.support.waiting import PATIENCE_SECONDS

# A poll interval longer than any test, so an earlier claim was woken.
POLL_SECONDS = 3600.0
SLOTS = 3


async def go_on_for_ever(payload: dict[str, Any], context: Context) -> Attempted:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
async def claimer(store: Store, clock: Clock, events: EventBus) -> AsyncIterator[Claimer]:
    """The claimer of a worker whose runs do not end by themselves."""
    holdings, identity = Holdings(), WorkerIdentity(new_id())
    completer = Completer(store=store, identity=identity, holdings=holdings, clock=clock, events=events)
    attempts = Attempts(
        tasks={"endless": KnownTask(go_on_for_ever, RunOptions(retries=0, timeout_seconds=POLL_SECONDS))},
        slots={"default": SLOTS},
        output_max_bytes=1000,
        holdings=holdings,
        on_outcome=completer.add,
    )
    config = Config(poll_seconds=POLL_SECONDS)
    claimer = Claimer(
        store=store,
        identity=identity,
        attempts=attempts,
        holdings=holdings,
        declined=DeclinedRuns(clock),
        completer=completer,
        tasks=["endless"],
        config=config,
        clock=clock,
        events=events,
    )
    await store.workers.register_worker(identity.id, "worker", {"default": SLOTS}, ["endless"])
    yield claimer
    await claimer.stop()
    attempts.release_all()
    await attempts.ended()


async def insert(store: Store, number: int) -> None:
    """Inserts runs without a hint."""
    await store.run_inserts.insert_runs([NewRun(id=new_id(), task="endless", queue="default") for _ in range(number)])


def is_woken(claimer: Claimer) -> bool:
    return claimer._woken.is_set()


async def test_claimer_claims_again_at_once_after_a_full_claim(claimer: Claimer, store: Store) -> None:
    await insert(store, SLOTS + 1)
    assert await claimer.run_once() == 0
    # No slot is free now. More runs are waiting, so the first free slot is a reason to claim.
    assert await claimer.run_once() == POLL_SECONDS
    claimer.on_slot_freed()
    assert is_woken(claimer)


async def test_claimer_claims_again_at_once_after_a_slightly_short_claim(claimer: Claimer, store: Store) -> None:
    await insert(store, SLOTS - 1)
    assert await claimer.run_once() == 0
    # Then it gets next to nothing.
    assert await claimer.run_once() > 0


async def test_claimer_waits_after_a_much_shorter_claim(claimer: Claimer, store: Store) -> None:
    await insert(store, SLOTS // 3)
    assert 0.75 * POLL_SECONDS <= (await claimer.run_once() or 0) <= POLL_SECONDS
    # The queue was empty then, so a free slot is no reason to claim.
    claimer.on_slot_freed()
    assert not is_woken(claimer)
    claimer.on_hint()
    assert is_woken(claimer)


async def test_claimer_that_receives_hints_polls_rarely(claimer: Claimer) -> None:
    claimer._is_listening = lambda: True
    assert 0.75 * HEARING_POLLS * POLL_SECONDS <= (await claimer.run_once() or 0) <= HEARING_POLLS * POLL_SECONDS


async def test_hint_wakes_the_claimer(claimer: Claimer, store: Store, events: EventBus) -> None:
    await insert(store, 1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        with events.expect(RunsClaimed) as claimed:
            await claimer.start()
            await claimed
        for _ in range(2):
            await insert(store, 1)
            with events.expect(RunsClaimed) as claimed:
                claimer.on_hint()
                await claimed


async def test_claimer_that_finds_nothing_after_a_hint_delays_longer_each_time(claimer: Claimer, store: Store) -> None:
    found = []
    for _ in range(8):
        claimer.on_hint()
        await claimer.run_once()
        found.append(claimer._hint_delay_seconds)
    assert (
        found == [FIRST_HINT_DELAY_SECONDS * factor for factor in (1, 2, 4, 8, 16, 32)] + [LAST_HINT_DELAY_SECONDS] * 2
    )
    # A poll that finds nothing says nothing about other workers.
    await claimer.run_once()
    assert claimer._hint_delay_seconds == LAST_HINT_DELAY_SECONDS
    await insert(store, 1)
    await claimer.run_once()
    assert claimer._hint_delay_seconds == 0


async def test_poll_that_finds_nothing_adds_no_hint_delay(claimer: Claimer) -> None:
    await claimer.run_once()
    assert claimer._hint_delay_seconds == 0
    claimer.on_hint()
    assert is_woken(claimer)


async def test_hints_during_the_hint_delay_share_one_claim(claimer: Claimer, monkeypatch: pytest.MonkeyPatch) -> None:
    claimer.on_hint()
    await claimer.run_once()
    claimer._woken.clear()
    loop, delays = asyncio.get_running_loop(), []
    call_later = loop.call_later

    def noting(delay: float, callback: Callable[..., object], *arguments: Any, **how: Any) -> asyncio.TimerHandle:
        if callback == claimer.wake:
            delays.append(delay)
        return call_later(delay, callback, *arguments, **how)

    monkeypatch.setattr(loop, "call_later", noting)
    for _ in range(3):
        claimer.on_hint()
        assert not is_woken(claimer)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await claimer._woken.wait()
    (delay,) = delays
    assert 0 <= delay <= FIRST_HINT_DELAY_SECONDS
