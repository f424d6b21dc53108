"""Python functions as tasks: results are stored completely or refused with a reason, and sync functions do not block
the event loop."""

from __future__ import annotations

import asyncio
import datetime
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import msgspec
import pytest

from foliot.model.ids import new_id
from foliot.model.outcome import Attempted, Ending, Outcome
from foliot.model.run import Claim, RunOptions
from foliot.model.states import RunState
from foliot.worker.attempts import Attempts
from foliot.worker.executors.base import Executor
from foliot.worker.executors.python import in_a_thread, on_the_loop
from foliot.worker.executors.threads import TaskThreads
from foliot.worker.holdings import Holdings
from foliot.worker.known_tasks import KnownTask
from tests.support.contexts import KeptContext
from tests.support.waiting import PATIENCE_SECONDS

LIMIT = 1000
MakeExecutor = Callable[[Callable[..., Any]], Executor]


class Unserialisable:
    def __repr__(self) -> str:
        return "Unserialisable()"


def circle() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


@pytest.fixture
def threads() -> Iterator[TaskThreads]:
    threads = TaskThreads(2)
    yield threads
    threads.close()


@pytest.fixture(params=["on the loop", "in a thread"])
def executor_of(request: pytest.FixtureRequest, threads: TaskThreads) -> MakeExecutor:
    """The executor of a function, once async and once sync."""

    def make(function: Callable[..., Any]) -> Executor:
        if request.param == "in a thread":
            return in_a_thread(function, threads, result_max_bytes=LIMIT)

        async def wrapped(**payload: Any) -> Any:
            return function(**payload)

        return on_the_loop(wrapped, result_max_bytes=LIMIT)

    return make


async def test_the_payload_is_the_keyword_arguments(executor_of: MakeExecutor) -> None:
    attempted = await executor_of(lambda a, b=2: [a, b])({"a": 1}, KeptContext())
    assert attempted == Attempted(Ending.SUCCEEDED, result="[1,2]")


async def test_a_function_without_a_result_stores_none(executor_of: MakeExecutor) -> None:
    assert await executor_of(lambda: None)({}, KeptContext()) == Attempted(Ending.SUCCEEDED)


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        (False, "false"),
        (0, "0"),
        ("", '""'),
        ({"a": [1, 2.5, None, "ü"]}, '{"a":[1,2.5,null,"ü"]}'),
        (10**30, "1" + "0" * 30),
        ((1, 2), "[1,2]"),
        (datetime.date(2026, 3, 1), '"2026-03-01"'),
        ("nul \0", '"nul \\u0000"'),
        ({"key \ud800": "lone \udfff"}, '{"key \\ud800": "lone \\udfff"}'),
    ],
)
async def test_a_result_is_kept_as_json(executor_of: MakeExecutor, result: object, kept: str) -> None:
    attempted = await executor_of(lambda: result)({}, KeptContext())
    assert attempted == Attempted(Ending.SUCCEEDED, result=kept)
    json.loads(kept)


@pytest.mark.parametrize(
    "result", [Unserialisable(), {None: 1}, [1j], circle(), {"a": "\ud800", "b": Unserialisable()}], ids=repr
)
async def test_a_result_that_is_not_json_is_an_error_of_the_task(executor_of: MakeExecutor, result: object) -> None:
    attempted = await executor_of(lambda: result)({}, KeptContext())
    assert (attempted.ending, attempted.result) == (Ending.FAILED, None)
    assert attempted.error is not None
    assert attempted.error.kind == "ResultNotStorable"


async def test_a_result_up_to_the_limit_is_kept_and_a_longer_one_is_refused_with_advice(
    executor_of: MakeExecutor,
) -> None:
    whole = await executor_of(lambda: "x" * (LIMIT - 2))({}, KeptContext())
    assert whole.result is not None
    assert len(whole.result) == LIMIT
    refused = await executor_of(lambda: "x" * (LIMIT - 1))({}, KeptContext())
    assert (refused.ending, refused.result) == (Ending.FAILED, None)
    assert refused.error is not None
    assert refused.error.kind == "ResultTooLarge"
    assert "1001 bytes" in refused.error.message
    assert "result_max_bytes = 1000" in refused.error.message


async def test_the_limit_counts_bytes_not_characters(executor_of: MakeExecutor) -> None:
    attempted = await executor_of(lambda: "ü" * (LIMIT // 2))({}, KeptContext())
    assert attempted.error is not None
    assert attempted.error.kind == "ResultTooLarge"


@pytest.mark.parametrize(
    ("result", "place"),
    [
        (float("nan"), ""),
        (float("-inf"), ""),
        ({"a": [1, None, float("inf")]}, "a[2]: "),
        ([{"\ud800": float("nan")}], "[0]."),
    ],
)
async def test_a_number_that_json_lacks_is_an_error_without_retries(
    executor_of: MakeExecutor, result: object, place: str
) -> None:
    attempted = await executor_of(lambda: result)({}, KeptContext())
    assert (attempted.ending, attempted.result, attempted.is_retryable) == (Ending.FAILED, None, False)
    assert attempted.error is not None
    assert attempted.error.kind == "ResultNotStorable"
    assert f"JSON: {place}" in attempted.error.message
    assert "JSON has neither infinity nor NaN" in attempted.error.message


async def test_an_error_of_the_function_is_recorded(executor_of: MakeExecutor) -> None:
    def fail() -> NoReturn:
        raise KeyError("missing")

    attempted = await executor_of(fail)({}, KeptContext())
    assert attempted.ending is Ending.FAILED
    assert attempted.error is not None
    assert (attempted.error.kind, attempted.error.message) == ("KeyError", "'missing'")
    assert 'raise KeyError("missing")' in attempted.error.traceback
    assert {"KeyError", "builtins.LookupError"} <= attempted.causes


async def test_an_exhausted_iterator_is_an_error_and_does_not_hang(executor_of: MakeExecutor) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        attempted = await executor_of(lambda: next(iter([])))({}, KeptContext())
    assert attempted.error is not None
    assert "StopIteration" in attempted.error.traceback


async def test_sync_functions_run_in_threads_and_do_not_block_the_loop(threads: TaskThreads) -> None:
    is_free, names = threading.Event(), []

    def block() -> None:
        names.append(threading.current_thread().name)
        assert is_free.wait(10)

    blocked = asyncio.create_task(in_a_thread(block, threads, result_max_bytes=LIMIT)({}, KeptContext()))
    await asyncio.sleep(0)
    is_free.set()
    await blocked
    assert names != [threading.main_thread().name]


async def test_async_functions_run_on_the_loop() -> None:
    async def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert await on_the_loop(where, result_max_bytes=LIMIT)({}, KeptContext()) == Attempted(
        Ending.SUCCEEDED, result="true"
    )


@pytest.mark.parametrize("goodbye", [SystemExit, KeyboardInterrupt])
async def test_a_task_that_calls_exit_only_fails(executor_of: MakeExecutor, goodbye: type[BaseException]) -> None:
    def leave() -> NoReturn:
        raise goodbye

    ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    task = KnownTask(executor_of(leave), RunOptions(retries=0, timeout_seconds=60))
    attempts = Attempts(
        tasks={"leave": task},
        slots={"default": 1},
        output_max_bytes=LIMIT,
        holdings=Holdings(),
        on_outcome=lambda outcome, _: ended.set_result(outcome),
    )
    attempts.start_all(
        [Claim(run_id=new_id(), token=1, attempt=1, lost=0, queue="default", task="leave", payload=None, options=None)]
    )
    outcome = await ended
    assert outcome.state is RunState.FAILED
    assert outcome.error is not None
    assert msgspec.json.decode(outcome.error)["kind"] == goodbye.__name__
