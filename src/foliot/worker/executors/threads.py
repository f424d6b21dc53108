"""Runs plain functions in threads, and hands their results to the event loop in batches.

Threads take calls from one queue until it is empty, and one more joins them only while calls wait. So a batch of quick
calls costs few switches between threads and few wakes of the event loop, and calls that block still get a thread each.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

NO_THREAD_SECONDS = 0.1
"""How long calls wait before a thread is requested again."""


class ThreadCall:
    """One call. Its thread reads what to call; everything else belongs to the event loop."""

    __slots__ = ("_arguments", "_context", "_function", "answer", "has_ended", "is_abandoned")

    def __init__(self, answer: asyncio.Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.answer = answer
        self.has_ended = False
        self.is_abandoned = False
        self._function = function
        self._arguments = arguments
        self._context = copy_context()

    def abandon(self) -> asyncio.Future[Any]:
        """Discards the result. Returns a future that is done once the function has returned."""
        self.is_abandoned = True
        self.answer = asyncio.get_running_loop().create_future()
        if self.has_ended:
            self.answer.set_result(None)
        return self.answer

    def run(self) -> tuple[Any, BaseException | None]:
        try:
            return self._context.run(self._function, *self._arguments), None
        except StopIteration as error:
            # A future refuses it.
            return None, RuntimeError(f"StopIteration: {error}")
        except BaseException as error:
            return None, error

    def end(self, result: Any, error: BaseException | None) -> None:
        self.has_ended = True
        if self.answer.done():
            # Its caller was cancelled.
            return
        if self.is_abandoned:
            self.answer.set_result(None)
        elif error is None:
            self.answer.set_result(result)
        else:
            self.answer.set_exception(error)


class TaskThreads:
    """At most `most` threads, for one event loop.

    They are daemons: a function that never returns does not keep the process alive.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: deque[ThreadCall] = deque()
        """Calls that have not begun."""
        self._ended: deque[tuple[ThreadCall, Any, BaseException | None]] = deque()
        self._threads = 0
        self._working = 0
        """Threads that take calls. The others wait for a ticket, which lets one of them work."""
        self._tickets: SimpleQueue[bool] = SimpleQueue()
        self._lock = threading.Lock()
        """Held to change `_working`. A thread that stops working makes sure under it that no call is left behind."""
        self._is_growing = False
        self._is_woken = False
        self._loop: asyncio.AbstractEventLoop

    def start(self, function: Callable[..., Any], *arguments: Any) -> ThreadCall:
        """Calls the function in a thread, with a copy of the context variables of the caller."""
        self._loop = loop = asyncio.get_running_loop()
        call = ThreadCall(loop.create_future(), function, arguments)
        self._calls.append(call)
        if not self._working:
            self._grow()
        elif not self._is_growing:
            # A working thread may take the call before the next turn of the loop.
            self._is_growing = True
            loop.call_soon(self._grow)
        return call

    def withdraw(self, call: ThreadCall) -> bool:
        """Whether the call had not begun; then it never will."""
        try:
            self._calls.remove(call)
        except ValueError:
            return False
        return True

    def close(self) -> None:
        """Calls that have not begun never will."""
        self._calls.clear()
        for _ in range(self._threads):
            self._tickets.put(False)

    def _grow(self) -> None:
        """Adds a thread in each turn of the loop, for as long as calls wait."""
        with self._lock:
            self._is_growing = bool(self._calls) and self._working < self._most
            if not self._is_growing:
                return
            self._working += 1
        if self._working > self._threads and not self._add_thread():
            with self._lock:
                self._working -= 1
            self._loop.call_later(NO_THREAD_SECONDS, self._grow)
            return
        self._tickets.put(True)
        self._loop.call_soon(self._grow)

    def _add_thread(self) -> bool:
        """False: the machine has no thread left."""
        try:
            threading.Thread(target=self._run, name=f"task_{self._threads}", daemon=True).start()
        except RuntimeError:
            return False
        self._threads += 1
        return True

    # --- in the threads

    def _run(self) -> None:
        while self._tickets.get():
            self._work()

    def _work(self) -> None:
        while True:
            try:
                call = self._calls.popleft()
            except IndexError:
                with self._lock:
                    # A call that is added from here on finds one thread less at work.
                    if not self._calls:
                        self._working -= 1
                        return
                continue
            self._ended.append((call, *call.run()))
            if not self._is_woken:
                self._is_woken = True
                with suppress(RuntimeError):
                    # The loop is closed: the worker has stopped.
                    self._loop.call_soon_threadsafe(self._hand_over)

    # --- on the event loop

    def _hand_over(self) -> None:
        # First, so that a call that ends meanwhile wakes the loop again.
        self._is_woken = False
        while self._ended:
            call, result, error = self._ended.popleft()
            call.end(result, error)
