"""The threads of plain functions: every call is answered once, calls that block get a thread each, quick ones share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NoReturn

import pytest

from foliot.worker.executors.threads import TaskThreads
from tests.support.waiting import PATIENCE_SECONDS

MOST = 4
word: ContextVar[str] = ContextVar("word", default="nothing")


@pytest.fixture
def threads() -> Iterator[TaskThreads]:
    threads = TaskThreads(MOST)
    yield threads
    threads.close()


async def answers(threads: TaskThreads, *functions: Any) -> list[Any]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await asyncio.gather(*(threads.start(function).answer for function in functions))


async def test_calls_that_wait_for_each_other_run_at_once(threads: TaskThreads) -> None:
    together = threading.Barrier(MOST)
    assert sorted(await answers(threads, *[lambda: together.wait(PATIENCE_SECONDS)] * MOST)) == list(range(MOST))


async def test_a_call_beside_one_that_blocks_does_not_wait_for_it(threads: TaskThreads) -> None:
    release = threading.Event()
    blocking = threads.start(release.wait, PATIENCE_SECONDS)
    assert await answers(threads, lambda: "quick") == ["quick"]
    release.set()
    assert await blocking.answer is True


async def test_no_more_threads_than_allowed_run_at_once(threads: TaskThreads) -> None:
    at_once, most, lock, full = 0, 0, threading.Lock(), threading.Event()

    def call() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        if at_once == MOST:
            full.set()
        full.wait(PATIENCE_SECONDS)
        with lock:
            at_once -= 1

    await answers(threads, *[call] * (5 * MOST))
    assert most == MOST


async def test_every_call_is_answered_once_with_its_own_result(threads: TaskThreads) -> None:
    begun: list[int] = []

    async def ask(number: int) -> int:
        await asyncio.sleep(0)

        def call() -> int:
            begun.append(number)
            return number

        answer: int = await threads.start(call).answer
        return answer

    async with asyncio.timeout(PATIENCE_SECONDS):
        for _ in range(20):
            begun.clear()
            assert await asyncio.gather(*map(ask, range(500))) == list(range(500))
            assert sorted(begun) == list(range(500))


async def test_a_call_sees_the_context_variables_of_its_caller_and_leaves_none(threads: TaskThreads) -> None:
    def change() -> str:
        before = word.get()
        word.set("changed")
        return before

    word.set("mine")
    assert await answers(threads, change, change, change) == ["mine"] * 3
    assert word.get() == "mine"


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(3), SystemExit(1), KeyboardInterrupt()])
async def test_an_error_is_raised_where_the_answer_is_awaited(threads: TaskThreads, error: BaseException) -> None:
    def fail() -> NoReturn:
        raise error

    with pytest.raises(RuntimeError if isinstance(error, StopIteration) else type(error)):
        await threads.start(fail).answer
    assert await answers(threads, lambda: "still here") == ["still here"]


async def test_a_withdrawn_call_never_begins(threads: TaskThreads) -> None:
    release, begun = threading.Event(), list[str]()
    blocking = [threads.start(release.wait, PATIENCE_SECONDS) for _ in range(MOST)]
    waiting = threads.start(begun.append, "begun")
    assert threads.withdraw(waiting)
    release.set()
    await asyncio.gather(*(call.answer for call in blocking))
    await answers(threads, *[lambda: None] * MOST)
    assert not begun
    assert not threads.withdraw(blocking[0])


@pytest.mark.parametrize("fails", [False, True])
async def test_an_abandoned_call_says_when_its_function_has_returned(threads: TaskThreads, *, fails: bool) -> None:
    begun, release = threading.Event(), threading.Event()

    def block() -> None:
        begun.set()
        release.wait(PATIENCE_SECONDS)
        if fails:
            raise ValueError("nobody hears this")

    call = threads.start(block)
    await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    call.answer.cancel()
    assert not threads.withdraw(call)
    returned = call.abandon()
    assert not returned.done()
    release.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await returned is None
    assert call.abandon().done()


async def test_calls_wait_while_the_machine_has_no_thread_left(
    threads: TaskThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, refused = threading.Thread.start, list[threading.Thread]()

    def refuse_twice(thread: threading.Thread) -> None:
        if len(refused) < 2:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse_twice)
    assert await answers(threads, lambda: 1, lambda: 2) == [1, 2]
    assert len(refused) == 2


async def test_closed_threads_end(threads: TaskThreads) -> None:
    used: set[threading.Thread] = set()
    await answers(threads, *[lambda: used.add(threading.current_thread())] * 10)
    threads.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        for thread in used:
            await asyncio.to_thread(thread.join)
