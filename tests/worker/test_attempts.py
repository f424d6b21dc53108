"""Attempts that are stopped before they begin, and attempts that can't be concluded."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Attempted, Ending, Outcome
from foliot.model.run import Cancel, Claim, RunOptions
from foliot.model.states import RunState
from foliot.sdk.context import Context
from foliot.worker.attempts import Attempts
from foliot.worker.executors.base import Executor
from foliot.worker.holdings import Holdings
from foliot.worker.known_tasks import KnownTask
from tests.support.waiting import until

SLOTS = 3


class Bench:
    def __init__(self, executor: Executor, *, may_never_wait: bool = False) -> None:
        self.outcomes: list[Outcome] = []
        task = KnownTask(
            executor,
            RunOptions(retries=0, timeout_seconds=60),
            asks_for_context=not may_never_wait,
            may_never_wait=may_never_wait,
            stop_seconds=0.05,
        )
        self.attempts = Attempts(
            tasks={"task": task},
            slots={"default": SLOTS},
            output_max_bytes=100,
            holdings=Holdings(),
            on_outcome=self.end,
        )
        self.claim = Claim(new_id(), 1, 1, 0, "default", "task", None, None)

    def end(self, outcome: Outcome, _: Claim) -> None:
        self.outcomes.append(outcome)

    def start(self) -> None:
        self.attempts.start_all([self.claim])


@pytest.mark.parametrize("way", ["cancel", "release"])
async def test_an_attempt_that_is_stopped_before_its_first_step_never_starts_and_keeps_no_slot(way: str) -> None:
    started = []

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        started.append(context)
        return Attempted(Ending.SUCCEEDED)

    bench = Bench(execute)
    bench.start()
    if way == "cancel":
        bench.attempts.end(bench.claim.run_id, 1, Cancel("cancelled", "by a test"))
    else:
        bench.attempts.release_all()
    await bench.attempts.ended()
    assert [outcome.state for outcome in bench.outcomes] == [RunState.CANCELLED if way == "cancel" else RunState.READY]
    await asyncio.sleep(0.2)
    assert not started
    assert bench.attempts.free_slots() == {"default": SLOTS}
    assert bench.attempts.left_running == 0


@pytest.mark.parametrize("may_never_wait", [False, True], ids=["own task", "shared task"])
async def test_an_attempt_that_can_not_be_concluded_is_reported(
    may_never_wait: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else would ever end the run, because the worker keeps renewing its lease."""

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        return Attempted(Ending.SUCCEEDED)

    bench = Bench(execute, may_never_wait=may_never_wait)
    monkeypatch.setattr(bench.attempts, "_on_outcome", lambda *_: 1 / 0)
    # Otherwise the error of the task would be reported to it.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    assert not bench.attempts.is_broken
    bench.start()

    async def is_broken() -> bool:
        return bench.attempts.is_broken

    await until(is_broken)


async def test_claims_that_can_not_start_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        return Attempted(Ending.SUCCEEDED)

    bench = Bench(execute)
    monkeypatch.setattr("foliot.worker.attempts.own_task", lambda work: work.close() or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bench.start()
    assert bench.attempts.is_broken


async def test_attempts_that_end_or_wait_are_not_broken() -> None:
    may_end = asyncio.Event()

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        await may_end.wait()
        return Attempted(Ending.SUCCEEDED)

    bench = Bench(execute)
    bench.start()
    for _ in range(5):
        await asyncio.sleep(0)
        assert not bench.attempts.is_broken
    may_end.set()
    await bench.attempts.ended()
    assert not bench.attempts.is_broken


async def test_a_job_that_patches_modules_does_not_break_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> NoReturn:
        raise RuntimeError("replaced")

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        for name in ("random.random", "random.uniform", "time.sleep", "msgspec.json.encode"):
            monkeypatch.setattr(name, fail)
        asyncio.get_running_loop().set_task_factory(fail)
        monkeypatch.setattr("asyncio.sleep", fail)
        raise LookupError("words")

    bench = Bench(execute)
    try:
        bench.start()
        await bench.attempts.ended()
        bench.start()
        await bench.attempts.ended()
    finally:
        monkeypatch.undo()
        asyncio.get_running_loop().set_task_factory(None)
    assert [outcome.state for outcome in bench.outcomes] == [RunState.FAILED] * 2
    assert not bench.attempts.is_broken
