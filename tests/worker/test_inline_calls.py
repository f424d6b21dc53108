"""Calls that share a task until one of them waits, without affecting each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any
from uuid import UUID

import msgspec
import pytest

from foliot.clock import SystemClock
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import Cancel, Claim, RunOptions
from foliot.model.states import RunState
from foliot.worker.attempts import Attempts
from foliot.worker.executors.python import on_the_loop
from foliot.worker.holdings import Holdings
from foliot.worker.inline_calls import TURN_SECONDS
from foliot.worker.known_tasks import KnownTask

NUMBER = 5
marked: ContextVar[str] = ContextVar("marked", default="")


class SteppingClock(SystemClock):
    """Each reading advances it by more than a turn may take."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 2 * TURN_SECONDS
        return self._now


class Bench:
    """Attempts of one async function, and their outcomes in order."""

    def __init__(
        self,
        function: Callable[..., Coroutine[Any, Any, object]],
        *,
        timeout_seconds: float = 60,
        clock: SystemClock | None = None,
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.holdings = Holdings()
        self.ids: list[UUID] = []
        options = RunOptions(retries=0, timeout_seconds=timeout_seconds)
        task = KnownTask(
            on_the_loop(function, result_max_bytes=1000), options, asks_for_context=False, may_never_wait=True
        )
        self.attempts = Attempts(
            tasks={"task": task},
            slots={"default": NUMBER},
            output_max_bytes=100,
            holdings=self.holdings,
            on_outcome=self._ended,
            clock=clock,
        )

    def _ended(self, outcome: Outcome, _: Claim) -> None:
        self.outcomes.append(outcome)
        self.holdings.settle([(outcome.run_id, outcome.token)])

    def start(self, number: int = NUMBER, *, options: str | None = None) -> None:
        self.ids = [new_id() for _ in range(number)]
        self.attempts.start_all(
            [
                Claim(run_id, 1, 1, 0, "default", "task", msgspec.json.encode({"place": place}).decode(), options)
                for place, run_id in enumerate(self.ids)
            ]
        )

    async def run(self, number: int = NUMBER) -> list[Outcome]:
        self.start(number)
        await self.attempts.ended()
        assert self.attempts.free_slots() == {"default": NUMBER}
        assert len(self.holdings) == 0
        return self.outcomes

    def kinds(self) -> list[str]:
        return [msgspec.json.decode(outcome.error)["kind"] for outcome in self.outcomes if outcome.error]


async def test_calls_that_never_wait_share_a_task_and_keep_their_order() -> None:
    tasks = set()

    async def task(place: int) -> int:
        tasks.add(asyncio.current_task())
        return place

    bench = Bench(task)
    outcomes = await bench.run()
    assert [outcome.run_id for outcome in outcomes] == bench.ids
    assert [outcome.result for outcome in outcomes] == ["0", "1", "2", "3", "4"]
    assert len(tasks) == 1


async def test_call_that_waits_does_not_block_other_calls() -> None:
    all_have_come, tasks = asyncio.Event(), set()

    async def task(place: int) -> None:
        tasks.add(asyncio.current_task())
        if len(tasks) == NUMBER:
            all_have_come.set()
        await all_have_come.wait()

    outcomes = await Bench(task).run()
    assert [outcome.state for outcome in outcomes] == [RunState.SUCCEEDED] * NUMBER
    assert len(tasks) == NUMBER


async def test_a_call_that_has_waited_runs_pending_calls_when_it_ends() -> None:
    came = []

    async def task(place: int) -> None:
        came.append(place)
        for _ in range(place):
            await asyncio.sleep(0)

    bench = Bench(task)
    await bench.run()
    assert came == list(range(NUMBER))
    assert {outcome.run_id for outcome in bench.outcomes} == set(bench.ids)


async def test_context_variables_of_a_job_are_isolated() -> None:
    seen = []

    async def task(place: int) -> None:
        seen.append(marked.get())
        marked.set(str(place))

    await Bench(task).run()
    assert seen == [""] * NUMBER


async def test_a_job_that_cancels_its_own_task_affects_no_other_job() -> None:
    async def task(place: int) -> None:
        if place == 1:
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            return
        await asyncio.sleep(0)

    outcomes = await Bench(task).run()
    assert [outcome.state for outcome in outcomes] == [RunState.SUCCEEDED] * NUMBER


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("waits", [False, True], ids=["at-once", "after-a-wait"])
async def test_error_of_a_call_fails_only_that_call(error: BaseException, waits: bool) -> None:
    async def task(place: int) -> None:
        if waits:
            await asyncio.sleep(0)
        if place == 2:
            raise error

    bench = Bench(task)
    outcomes = await bench.run()
    assert sorted(outcome.state for outcome in outcomes) == [RunState.FAILED] + [RunState.SUCCEEDED] * (NUMBER - 1)
    assert bench.kinds() == [type(error).__name__]


async def test_only_the_call_that_waits_too_long_times_out() -> None:
    async def task(place: int) -> None:
        if place == 0:
            await asyncio.Event().wait()

    bench = Bench(task, timeout_seconds=0.05)
    outcomes = await bench.run()
    assert {outcome.run_id: outcome.reason for outcome in outcomes} == dict.fromkeys(bench.ids) | {
        bench.ids[0]: "timeout"
    }


async def test_a_waiting_call_can_be_cancelled() -> None:
    async def task(place: int) -> None:
        await asyncio.Event().wait()

    bench = Bench(task)
    bench.start(2)
    while len(bench.attempts.under_way) < 2:
        await asyncio.sleep(0)
    bench.attempts.end(bench.ids[1], 1, Cancel("cancelled", "enough"))
    while not bench.outcomes:
        await asyncio.sleep(0)
    assert [(outcome.run_id, outcome.state) for outcome in bench.outcomes] == [(bench.ids[1], RunState.CANCELLED)]
    assert bench.holdings.keys() == [(bench.ids[0], 1)]
    bench.attempts.release_all()
    await bench.attempts.ended()
    assert bench.outcomes[1].state is RunState.READY


async def test_a_pending_call_can_be_cancelled_and_is_released() -> None:
    called = []

    async def task(place: int) -> None:
        called.append(place)

    bench = Bench(task)
    bench.start(3)
    assert set(bench.holdings.keys()) == {(run_id, 1) for run_id in bench.ids}
    bench.attempts.end(bench.ids[0], 1, Cancel("cancelled", "enough"))
    bench.attempts.release_all()
    await bench.attempts.ended()
    assert [outcome.state for outcome in bench.outcomes] == [RunState.CANCELLED, RunState.READY, RunState.READY]
    await asyncio.sleep(0)
    assert called == []


async def test_many_calls_yield_to_the_event_loop() -> None:
    between: list[int | str] = []

    async def task(place: int) -> None:
        between.append(place)
        if place == 0:
            asyncio.get_running_loop().call_soon(between.append, "others")

    await Bench(task, clock=SteppingClock()).run()
    assert between == [0, "others", 1, 2, 3, 4]


async def test_unreadable_options_fail_only_their_run() -> None:
    async def task(place: int) -> None:
        return None

    bench = Bench(task)
    bench.start(1, options='{"retries": "many"}')
    await bench.attempts.ended()
    assert bench.kinds() == ["InvalidOptions"]


async def test_a_timeout_inside_a_shared_task_works() -> None:
    async def task(place: int) -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "late"
        return "never"

    outcomes = await Bench(task).run()
    assert [outcome.result for outcome in outcomes] == ['"late"'] * NUMBER
