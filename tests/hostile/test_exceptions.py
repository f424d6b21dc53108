"""Exceptions that resist being formatted: every attempt ends, with as much of its error as possible, in bounded
time."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

import foliot
from foliot.model.ids import new_id
from foliot.model.outcome import ERROR_KIND_MAX, ERROR_TEXT_MAX, Attempted, Ending, Outcome
from foliot.model.run import Claim, RunOptions
from foliot.model.states import RunState
from foliot.worker.attempts import Attempts
from foliot.worker.executors.base import Executor
from foliot.worker.executors.python import in_a_thread, on_the_loop
from foliot.worker.executors.task_errors import classify_error
from foliot.worker.executors.threads import TaskThreads
from foliot.worker.holdings import Holdings
from foliot.worker.known_tasks import KnownTask
from tests.support.waiting import PATIENCE_SECONDS

forever = threading.Event()
"""Releases threads that would otherwise run forever, once their test has ended."""


def fail(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("no")


def never_return(*_: object) -> str:
    forever.wait()
    return ""


class Enormous:
    def __str__(self) -> str:
        return "x" * 50_000_000

    __repr__ = __str__


class Pretender(str):
    """A string whose own methods can't be trusted."""

    __slots__ = ()
    __len__ = __getitem__ = __iter__ = replace = encode = __format__ = __eq__ = __hash__ = fail


class Meta(type):
    """A metaclass that fails at every inspection of its class."""

    __eq__ = __hash__ = __instancecheck__ = __subclasscheck__ = fail

    def __getattribute__(cls, name: str) -> NoReturn:
        fail()


def made(name: str, *bases: type[BaseException], **fields: Any) -> type[BaseException]:
    return type(name, bases or (Exception,), fields)


def chained(length: int) -> BaseException:
    error: BaseException = ValueError("the root")
    for number in range(length):
        following = ValueError(f"link {number}")
        following.__cause__ = error
        error = following
    return error


def in_a_circle() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__context__ = second, first
    return first


def nested(depth: int) -> BaseException:
    error: Exception = ValueError("inside")
    for _ in range(depth):
        error = ExceptionGroup("around", [error, error])
    return error


def with_notes(notes: object) -> BaseException:
    error = ValueError("noted")
    error.__notes__ = notes  # type: ignore[assignment]
    return error


def with_traceback_of(filename: str, name: str = "f") -> BaseException:
    code = compile("def f(): raise ValueError('from far away')\nf()", filename, "exec")
    try:
        exec(code, {"__loader__": Enormous()})
    except ValueError as error:
        return error
    raise AssertionError


def deep() -> BaseException:
    limit = sys.getrecursionlimit()

    def recurse() -> None:
        recurse()

    sys.setrecursionlimit(50_000)
    try:
        recurse()
    except RecursionError as error:
        return error
    finally:
        sys.setrecursionlimit(limit)
    raise AssertionError


HOSTILE: dict[str, Callable[[], BaseException]] = {
    "str raises": made("E", __str__=fail),
    "str raises itself": made("E", __str__=lambda self: (_ for _ in ()).throw(self)),
    "str raises SystemExit": made("E", __str__=lambda _: sys.exit(3)),
    "str raises CancelledError": made("E", __str__=lambda _: (_ for _ in ()).throw(asyncio.CancelledError())),
    "str is no text": made("E", __str__=lambda _: 7),
    "str is enormous": made("E", __str__=lambda _: "x" * 50_000_000),
    "str is a text of its own": made("E", __str__=lambda _: Pretender("words")),
    "str recurses": made("E", __str__=lambda self: str(self)),
    "repr raises": made("E", __str__=BaseException.__repr__, __repr__=fail),
    "argument raises": lambda: ValueError(type("A", (), {"__str__": fail, "__repr__": fail})()),
    "argument is enormous": lambda: ValueError(Enormous()),
    "arguments are enormous": lambda: ValueError(Enormous(), Enormous()),
    "argument is a long text": lambda: ValueError("x" * 50_000_000),
    "a million arguments": lambda: ValueError(*range(1_000_000)),
    "integer is enormous": lambda: ValueError(1 << 50_000_000),
    "class is made up": made("E", __class__=property(fail)),
    "attributes raise": made("E", __getattribute__=fail),
    "attributes of Python raise": made(
        "E", __cause__=property(fail), __context__=property(fail), __traceback__=property(fail),
        __notes__=property(fail),
        __suppress_context__=property(fail), args=property(fail), __dict__=property(fail),
    ),
    "equality and hash raise": made("E", __eq__=fail, __hash__=fail, __bool__=fail, __len__=fail),
    "reduce raises": made("E", __reduce__=fail, __reduce_ex__=fail),
    "metaclass": lambda: Meta("E", (Exception,), {})("words"),
    "name is enormous": made("E" * 10_000_000),
    "name is not storable": made("E", __qualname__="E \ud800 \0"),
    "module is no text": made("E", __module__=7),
    "module is enormous": made("E", __module__="m" * 10_000_000),
    "a thousand bases": lambda: made("E", *[made(f"B{number}") for number in range(1000)])(),
    "chain is long": lambda: chained(100_000),
    "chain is a circle": in_a_circle,
    "cause raises": lambda: _caused_by(made("E", __str__=fail)()),
    "cause never speaks": lambda: _caused_by(made("E", __str__=never_return)()),
    "group is large": lambda: ExceptionGroup("g", [ValueError(number) for number in range(1_000_000)]),
    "group is deep": lambda: nested(300),
    "group lies": lambda: made("G", ExceptionGroup, exceptions=property(fail), message=property(fail))("g",
        [ValueError("m")]),
    "member raises": lambda: ExceptionGroup("g", [made("E", __str__=fail)()]),  # type: ignore[type-var]
    "a million notes": lambda: with_notes(["note"] * 1_000_000),
    "note is enormous": lambda: with_notes(["n" * 50_000_000]),
    "notes are no list": lambda: with_notes(Enormous()),
    "notes are no texts": lambda: with_notes([Enormous(), None, Pretender("p")]),
    "source is a device": lambda: with_traceback_of("/dev/zero"),
    "source has an enormous name": lambda: with_traceback_of("f" * 1_000_000),
    "traceback is deep": deep,
    "snooze lies": made("S", foliot.Snooze, __init__=lambda self: None, seconds=property(fail)),
    "retry lies": made("R", foliot.RetryIn, __init__=lambda self: None, seconds="soon"),
    "retry never": made("R", foliot.RetryIn, __init__=lambda self: None, seconds=float("nan")),
    "fail lies": made("F", foliot.Fail, __str__=fail),
    "exit code is enormous": lambda: SystemExit(1 << 200),
    "exit code is no number": lambda: SystemExit(Enormous()),
    "out of memory": MemoryError,
    "generator's end": GeneratorExit,
    "interrupt": KeyboardInterrupt,
    "root of all": made("Root", BaseException),
    "stop": StopIteration,
    "async stop": StopAsyncIteration,
    "cancelled by itself": asyncio.CancelledError,
    "cancelled by its own kind": made("C", asyncio.CancelledError, __str__=fail),
}  # fmt: skip
NEVER_SPEAKS: dict[str, Callable[[], BaseException]] = {
    "str never returns": made("E", __str__=never_return),
    "argument never returns": lambda: ValueError(type("A", (), {"__str__": never_return})()),
    "member never returns": lambda: ExceptionGroup("g", [made("E", __str__=never_return)()]),  # type: ignore[type-var]
    "delay never comes": made("S", foliot.Snooze, __init__=lambda self: None, seconds=property(never_return)),
}


def _caused_by(cause: BaseException) -> BaseException:
    error = ValueError("words")
    error.__cause__ = cause
    return error


@pytest.fixture(autouse=True)
def _end_of_forever() -> Iterator[None]:
    forever.clear()
    yield
    forever.set()


@pytest.fixture
def threads() -> Iterator[TaskThreads]:
    threads = TaskThreads(2)
    yield threads
    threads.close()


def task_that_raises(make: Callable[[], BaseException]) -> Callable[[], NoReturn]:
    def task() -> NoReturn:
        raise make()

    return task


def as_async(task: Callable[[], Any]) -> Callable[[], Any]:
    async def wrapped() -> Any:
        return task()

    return wrapped


async def outcome_of(executor: Executor, *, timeout_seconds: float = 60, may_never_wait: bool = False) -> Outcome:
    """The outcome of one attempt, run as a worker does."""
    outcomes: list[Outcome] = []
    known = KnownTask(
        executor,
        RunOptions(retries=0, timeout_seconds=timeout_seconds),
        asks_for_context=not may_never_wait,
        may_never_wait=may_never_wait,
        stop_seconds=0.2,
    )
    attempts = Attempts(
        tasks={"task": known},
        slots={"default": 1},
        holdings=Holdings(),
        output_max_bytes=100,
        on_outcome=lambda outcome, _: outcomes.append(outcome),
    )
    attempts.start_all([Claim(new_id(), 1, 1, 0, "default", "task", None, None)])
    async with asyncio.timeout(PATIENCE_SECONDS):
        await attempts.ended()
    assert len(outcomes) == 1
    assert attempts.under_way == {}
    return outcomes[0]


def is_storable(attempted: Attempted) -> bool:
    error = attempted.error
    assert error is not None
    encoded = msgspec.json.encode(error)
    assert b"\\u0000" not in encoded
    # Every lone surrogate may take six characters.
    return (
        len(error.kind) <= 6 * ERROR_KIND_MAX
        and max(len(error.message), len(error.traceback)) <= 6 * ERROR_TEXT_MAX + 5
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", HOSTILE)
def test_any_exception_gets_a_bounded_text(name: str) -> None:
    error = HOSTILE[name]() if "never" not in name else ValueError()
    try:
        raise error
    except BaseException as caught:
        spent = time.process_time()
        attempted = classify_error(caught)
        spent = time.process_time() - spent
    assert attempted.ending in (Ending.FAILED, Ending.SNOOZED)
    assert is_storable(attempted)
    assert all(len(str(cause)) <= 1000 for cause in attempted.causes)
    # Creating a text of 50 MB takes a moment, and it is created for the message and for the traceback.
    assert spent < 5


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("where", ["lane", "loop", "thread"])
async def test_an_attempt_ends_whatever_it_raises(name: str, where: str, threads: TaskThreads) -> None:
    task = task_that_raises(HOSTILE[name])
    if where == "thread":
        executor = in_a_thread(task, threads, result_max_bytes=1000)
    else:
        executor = on_the_loop(as_async(task), result_max_bytes=1000)
    # In a thread, a message that is never returned is just a function that takes too long.
    outcome = await outcome_of(
        executor, timeout_seconds=1 if "never" in name and where == "thread" else 60, may_never_wait=where == "lane"
    )
    assert outcome.state in (RunState.FAILED, RunState.SCHEDULED)
    if outcome.state is RunState.FAILED:
        assert outcome.error is not None


@pytest.mark.parametrize("seconds", [float("nan"), -1e18, float("inf"), "soon", None])
@pytest.mark.parametrize("control", [foliot.Snooze, foliot.RetryIn])
def test_an_invalid_delay_is_a_failure(control: type[Exception], seconds: Any) -> None:
    """It used to count as no delay, so a task could snooze a million times without a pause."""
    attempted = classify_error(made("C", control, __init__=lambda self: None, seconds=seconds)())
    assert (attempted.ending, attempted.delay_seconds) == (Ending.FAILED, None)
    assert attempted.error is not None
    assert "the error cannot be described: " in attempted.error.message


@pytest.mark.parametrize("name", NEVER_SPEAKS)
@pytest.mark.parametrize("where", ["lane", "loop"])
async def test_an_error_whose_message_never_returns_blocks_neither_its_attempt_nor_the_loop(
    name: str, where: str
) -> None:
    executor = on_the_loop(as_async(task_that_raises(NEVER_SPEAKS[name])), result_max_bytes=1000)
    turns = 0

    async def go_on() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    going = asyncio.create_task(go_on())
    try:
        outcome = await outcome_of(executor, may_never_wait=where == "lane")
    finally:
        going.cancel()
    assert outcome.state is RunState.FAILED
    assert "did not return within" in msgspec.json.decode(outcome.error or "")["message"]
    assert turns > 10


@pytest.mark.parametrize("name", NEVER_SPEAKS)
async def test_the_time_limit_ends_such_an_error_in_a_thread(name: str, threads: TaskThreads) -> None:
    executor = in_a_thread(task_that_raises(NEVER_SPEAKS[name]), threads, result_max_bytes=1000)
    outcome = await outcome_of(executor, timeout_seconds=0.5)
    assert (outcome.state, outcome.reason) == (RunState.FAILED, "timeout")


def test_source_files_that_are_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    attempted = classify_error(with_traceback_of(str(tmp_path / "pipe")))
    assert attempted.error is not None
    assert "from far away" in attempted.error.message


def test_the_last_links_of_a_chain_and_both_ends_of_the_frames_are_kept() -> None:
    error = classify_error(chained(1000)).error
    assert error is not None
    assert error.message == "link 999"
    assert "link 980" in error.traceback
    assert "link 979" not in error.traceback
    assert "earlier errors omitted" in error.traceback
    told = classify_error(deep()).error
    assert told is not None
    assert told.kind == "RecursionError"
    assert "frames omitted" in told.traceback


def test_the_text_equals_that_of_python() -> None:
    try:
        try:
            dict[str, int]()["key"]
        except KeyError as error:
            error.add_note("a note")
            raise ValueError("wrapped") from error
    except ValueError as caught:
        error_told = classify_error(caught).error
    assert error_told is not None
    text = error_told.traceback
    assert text.index("KeyError: 'key'\na note\n") < text.index("direct cause") < text.index("ValueError: wrapped")
    assert 'dict[str, int]()["key"]' in text
