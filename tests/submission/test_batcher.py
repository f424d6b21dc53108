"""The batcher writes what arrives together with one call, and gives each caller its own result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from foliot.clock import SystemClock
from foliot.errors import Invalid, StoreUnavailable
from foliot.events import EventBus
from foliot.submission import batcher as module
from foliot.submission.batcher import Batcher


class Doubler(Batcher[int, int]):
    """Doubles numbers. Refuses 7, and fails as a whole for a batch with 13."""

    def __init__(self) -> None:
        super().__init__(clock=SystemClock(), events=EventBus())
        self.batches: list[list[int]] = []
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.failure: Exception = ZeroDivisionError("13")

    async def write(self, items: Sequence[int]) -> list[int | Exception]:
        self.batches.append(list(items))
        await self.is_open.wait()
        if 13 in items:
            raise self.failure
        return [Invalid("7", field="item") if item == 7 else item * 2 for item in items]


@pytest.fixture
async def doubler() -> AsyncIterator[Doubler]:
    started = Doubler()
    await started.start()
    yield started
    started.is_open.set()
    await started.stop()


async def gather(doubler: Doubler, *items: int) -> list[object]:
    """The results of items that arrive while the item 0 is being written."""
    doubler.is_open.clear()
    first = asyncio.create_task(doubler.add(0))
    while not doubler.batches:
        await asyncio.sleep(0)
    rest = [asyncio.create_task(doubler.add(item)) for item in items]
    await asyncio.sleep(0)
    doubler.is_open.set()
    await first
    return list(await asyncio.gather(*rest, return_exceptions=True))


async def test_items_that_arrive_during_a_write_share_the_next(doubler: Doubler) -> None:
    assert await gather(doubler, 1, 2, 3) == [2, 4, 6]
    assert doubler.batches == [[0], [1, 2, 3]]


async def test_a_batch_has_a_size_limit(doubler: Doubler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    assert await gather(doubler, 1, 2, 3) == [2, 4, 6]
    assert doubler.batches == [[0], [1, 2], [3]]


async def test_a_refused_item_fails_alone(doubler: Doubler) -> None:
    one, refused, other = await gather(doubler, 1, 7, 2)
    assert (one, type(refused), other) == (2, Invalid, 4)
    assert doubler.batches == [[0], [1, 7, 2]]


async def test_items_are_written_one_by_one_after_the_database_refused_the_batch(doubler: Doubler) -> None:
    one, failed, other = await gather(doubler, 1, 13, 2)
    assert (one, type(failed), other) == (2, ZeroDivisionError, 4)
    assert doubler.batches == [[0], [1, 13, 2], [1], [13], [2]]


async def test_an_unreachable_database_fails_the_whole_batch_at_once(doubler: Doubler) -> None:
    doubler.failure = StoreUnavailable("PostgreSQL is away")
    assert [type(one) for one in await gather(doubler, 1, 13)] == [StoreUnavailable] * 2
    assert doubler.batches == [[0], [1, 13]]


async def test_a_cancelled_caller_on_the_loop_does_not_disturb_the_batch(doubler: Doubler) -> None:
    doubler.is_open.clear()
    tasks = [asyncio.create_task(doubler.add(item)) for item in (1, 2)]
    while not doubler.batches:
        await asyncio.sleep(0)
    tasks[0].cancel()
    doubler.is_open.set()
    assert await tasks[1] == 4


async def test_an_item_that_a_thread_gave_up_is_not_written(doubler: Doubler) -> None:
    doubler.is_open.clear()
    first = doubler.add_from_thread(0)
    while not doubler.batches:
        await asyncio.sleep(0)
    given_up, kept = doubler.add_from_thread(1), doubler.add_from_thread(2)
    assert given_up.cancel()
    doubler.is_open.set()
    assert (await asyncio.wrap_future(first), await asyncio.wrap_future(kept)) == (0, 4)
    assert doubler.batches == [[0], [2]]


async def test_stopping_writes_pending_items_and_refuses_new_ones(doubler: Doubler) -> None:
    pending = [doubler.add_from_thread(item) for item in (1, 2)]
    await doubler.stop()
    assert [future.result() for future in pending] == [2, 4]
    with pytest.raises(StoreUnavailable, match="this client is closed"):
        doubler.add_from_thread(3)


async def test_callers_in_another_event_loop_get_their_own_results(doubler: Doubler) -> None:
    async def ask() -> list[object]:
        answers = [doubler.add_from_loop(item) for item in (1, 7, 2)]
        return list(await asyncio.gather(*answers, return_exceptions=True))

    one, refused, other = await asyncio.to_thread(asyncio.run, ask())
    assert (one, type(refused), other) == (2, Invalid, 4)


async def test_an_item_that_another_event_loop_gave_up_is_not_written(doubler: Doubler) -> None:
    async def ask() -> int:
        doubler.is_open.clear()
        first = doubler.add_from_loop(0)
        while not doubler.batches:
            await asyncio.sleep(0)
        given_up, kept = doubler.add_from_loop(1), doubler.add_from_loop(2)
        given_up.cancel()
        doubler._home.call_soon_threadsafe(doubler.is_open.set)
        await first
        return await kept

    assert await asyncio.to_thread(asyncio.run, ask()) == 4
    assert doubler.batches == [[0], [2]]


async def test_a_loop_that_has_closed_does_not_disturb_the_others(doubler: Doubler) -> None:
    async def leave() -> None:
        doubler._home.call_soon_threadsafe(doubler.is_open.clear)
        doubler.add_from_loop(1)
        while not doubler.batches:
            await asyncio.sleep(0)

    await asyncio.to_thread(asyncio.run, leave())
    here = doubler.add_from_loop(2)
    doubler.is_open.set()
    assert await here == 4
