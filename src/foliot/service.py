"""The base class of everything that runs in the background.

A `Service` implements one turn (`run_once`) and returns the wait until the next one. The base class owns the loop: it
runs a turn, waits for time, wake or stop, backs off after errors, and never dies silently. `start` and `stop` are
idempotent, in any order and from any number of callers. A `Supervisor` starts services in order and stops them in
reverse.
"""

from __future__ import annotations

import asyncio
import math
from asyncio.tasks import _unregister_task
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from random import uniform
from typing import Any, TypeVar

from foliot.clock import Clock
from foliot.events import EventBus, ServiceFailed

T = TypeVar("T")

FIRST_BACKOFF_SECONDS = 0.1
LAST_BACKOFF_SECONDS = 5.0


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Creates uvloop's event loop. None where uvloop is not installed: asyncio's own loop serves."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def own_task(
    work: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
) -> asyncio.Task[Any]:
    """Creates a task that `asyncio.all_tasks()` does not show, so that a job that cancels all tasks on the shared loop
    can't end the worker or other attempts."""
    # Not with the loop's own method: a job may have set a task factory.
    return hidden(asyncio.Task(work, loop=asyncio.get_running_loop(), name=name, context=context))


def hidden(task: asyncio.Task[Any]) -> asyncio.Task[Any]:
    _unregister_task(task)
    return task


def backoff(failures: int) -> float:
    longest: float = min(FIRST_BACKOFF_SECONDS * 2**failures, LAST_BACKOFF_SECONDS)
    return uniform(0.5, 1.0) * longest  # noqa: S311


class Service:
    """Runs `run_once` until stopped. `run_once` returns the seconds until its next turn; 0 means at once, None means
    that it waits for `wake`."""

    def __init__(self, *, clock: Clock, events: EventBus) -> None:
        self.clock = clock
        self.events = events
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failing: dict[str, tuple[int, float]] = {}
        """Chores that failed last time: the number of failures in a row, and when to try again."""
        self._ready: asyncio.Future[None]

    @property
    def name(self) -> str:
        return type(self).__name__

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def has_died(self) -> bool:
        """Whether its loop has ended although nothing asked it to stop."""
        task = self._task
        return task is not None and task.done() and not self._stopping.is_set()

    async def run_once(self) -> float | None:
        raise NotImplementedError  # pragma: no cover

    async def each(self, *chores: Callable[[], Awaitable[float]]) -> float:
        """Runs several chores in order. Each returns the seconds until it is due again; `each` returns the smallest.

        A chore that fails is reported and backs off by itself. The other chores still get their turn.
        """
        soonest = math.inf
        for chore in chores:
            failures, not_before = self._failing.get(chore.__name__, (0, -math.inf))
            if (left := not_before - self.clock.monotonic()) > 0:
                soonest = min(soonest, left)
                continue
            try:
                delay = await chore()
                self._failing.pop(chore.__name__, None)
            except Exception as error:
                failures += 1
                delay = backoff(failures)
                self._failing[chore.__name__] = (failures, self.clock.monotonic() + delay)
                name = chore.__name__.strip("_")
                self.events.emit(ServiceFailed(self.name, f"{name}: {type(error).__name__}: {error}", round(delay, 2)))
            soonest = min(soonest, delay)
        return soonest

    async def attempt(self, what: str, work: Awaitable[T], otherwise: T) -> T:
        """Awaits one of many similar pieces of work. Reports a failure and returns `otherwise`, so that the next one
        gets its turn."""
        try:
            return await work
        except Exception as error:
            self.events.emit(ServiceFailed(self.name, f"{what}: {type(error).__name__}: {error}", 0))
            return otherwise

    async def on_start(self) -> None:
        """Runs before the first turn. `start` raises its errors."""

    async def on_stop(self) -> None:
        """Runs after the last turn."""

    async def start(self) -> None:
        while (ending := self._task) is not None and self._stopping.is_set():
            await asyncio.wait([ending])
            self._forget(ending)
        if self._task is None:
            # Set before the first await, so that a concurrent start or stop sees that the service has started.
            self._stopping.clear()
            self._ready = asyncio.get_running_loop().create_future()
            self._task = own_task(self._run(self._ready), name=self.name)
        await asyncio.shield(self._ready)

    def wake(self) -> None:
        """Starts the next turn now."""
        self._woken.set()

    def stop_soon(self) -> None:
        """Requests the stop without waiting for it."""
        self._stopping.set()
        self._woken.set()

    async def stop(self) -> None:
        """Returns when the last turn has ended. Inside `run_once`, use `stop_soon` instead."""
        self.stop_soon()
        if task := self._task:
            await asyncio.wait([task])
            self._forget(task)

    def _forget(self, task: asyncio.Task[None]) -> None:
        if self._task is task:
            self._task = None
            if not task.cancelled():
                task.result()

    async def _run(self, ready: asyncio.Future[None]) -> None:
        try:
            await self.on_start()
        except BaseException as error:
            self._task = None
            ready.set_exception(error)
            return
        ready.set_result(None)
        try:
            await self._loop()
        finally:
            await self.on_stop()

    async def _loop(self) -> None:
        failures = 0
        delay: float | None
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                delay = await self.run_once()
                failures = 0
            except (Exception, asyncio.CancelledError) as error:
                # Unless this task itself is cancelled, the cancellation comes from something that the turn awaits.
                if self._task is not None and self._task.cancelling():
                    raise
                failures += 1
                delay = backoff(failures)
                self.events.emit(ServiceFailed(self.name, f"{type(error).__name__}: {error}", round(delay, 2)))
                await self.clock.wait(self._stopping, delay)
                continue
            if delay != 0 and not self._stopping.is_set():
                await self.clock.wait(self._woken, delay)
            else:
                await self.clock.sleep(0)


class Supervisor:
    """Starts services in order and stops them in reverse. If a start fails, it stops the services already started."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.services = tuple(services)

    async def start(self) -> None:
        for service in self.services:
            try:
                await service.start()
            except BaseException:
                await self.stop()
                raise

    async def stop(self) -> None:
        """Stops all services, even if one fails to stop, then raises the first error."""
        errors = []
        for service in reversed(self.services):
            try:
                await service.stop()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
