"""Runs Python tasks in separate processes (`process=True`), for code that must be killable or that keeps a core busy.

The processes are started by exec, kept warm and reused, one attempt at a time. On a timeout or a cancel, the worker
first asks the function to stop (`ctx.should_stop()`), then kills the process and everything it started. The worker's
death kills it too. If a process dies by itself, its attempt fails, and the pool replaces it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from contextlib import suppress
from typing import Any

import msgspec

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.app import Function
from foliot.sdk.context import Context
from foliot.service import own_task
from foliot.worker.executors.base import Executor, Refuse, fail_at_once
from foliot.worker.executors.processes.environment import without_settings
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from foliot.worker.executors.processes.messages import Begin, Call, Ended, Ready, Stop, decode_answer, encode
from foliot.worker.executors.processes.process_tree import (
    CHUNK,
    END_SECONDS,
    PIPE_CHUNKS,
    Command,
    ProcessTree,
    Verdict,
)
from foliot.worker.executors.python import asks_for_context
from foliot.worker.executors.shell import signal_name

ASK_SECONDS = 2.0
"""How long a function with a context may take to stop before its process gets a SIGTERM."""
IDLE_SECONDS = 10.0
"""How long processes beyond the number of cores may stay idle."""
ANSWER_MAX_BYTES = 1_048_576
"""The size limit of an answer without its result. Errors and progress are truncated before they are sent."""
LIVES = 1000
"""The number of attempts after which a process is replaced, which bounds memory leaks of tasks."""


def in_a_process(
    function: Function, processes: ProcessPool, *, result_max_bytes: int, refuse: Refuse = fail_at_once
) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        call = Call(
            module=function.__module__, name=function.__qualname__, payload=payload, run_id=context.run_id,
            token=context.token,
            attempt=context.attempt, task=context.task, result_max_bytes=result_max_bytes,
            upstream=dict(context.upstream), signal=context.signal, tick=context.stored_tick,
        )  # fmt: skip
        process = await processes.take()
        try:
            attempted = await process.call(call, context)
        except asyncio.CancelledError:
            await process.stop(can_ask=asks_for_context(function))
            raise
        finally:
            await processes.give_back(process)
        return await refuse(payload, attempted) if attempted.is_misfit else attempted

    return execute


class ProcessPool:
    """Starts processes while attempts wait, but no more at once than there are cores, since a running attempt may end
    before another process is up.

    The pool keeps as many idle processes as there are cores, and ends the others after a while.
    """

    def __init__(self, launchers: LauncherPool) -> None:
        self._launchers = launchers
        self._cores = os.cpu_count() or 2
        self._idle: list[PythonProcess] = []
        """The most recently used process is last."""
        self._waiting: deque[asyncio.Future[PythonProcess]] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._shedding: asyncio.TimerHandle | None = None

    async def take(self) -> PythonProcess:
        while self._idle:
            process = self._idle.pop()
            if process.is_usable:
                return process
            await process.end()
        waiter: asyncio.Future[PythonProcess] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._start_more()
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled() and waiter.exception() is None:
                # The process arrived just as the attempt was cancelled.
                await self.give_back(waiter.result())
            raise

    async def give_back(self, process: PythonProcess) -> None:
        if process.is_usable:
            self._hand_over(process)
        else:
            await process.end()
            self._start_more()

    async def close(self) -> None:
        if self._shedding is not None:
            self._shedding.cancel()
        if under_way := self._starting | self._ending:
            await asyncio.wait(under_way)
        while self._idle:
            await self._idle.pop().end()

    def _start_more(self) -> None:
        self._waiting = deque(waiter for waiter in self._waiting if not waiter.done())
        while len(self._starting) < min(self._cores, len(self._waiting)):
            task = own_task(self._start())
            self._starting.add(task)
            task.add_done_callback(self._started)

    async def _start(self) -> None:
        process = PythonProcess(self._launchers)
        try:
            await process.start()
        except Exception as error:
            if (waiter := self._next_waiting()) is not None:
                waiter.set_exception(error)
        else:
            self._hand_over(process)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        self._start_more()

    def _next_waiting(self) -> asyncio.Future[PythonProcess] | None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                return waiter
        return None

    def _hand_over(self, process: PythonProcess) -> None:
        if (waiter := self._next_waiting()) is not None:
            waiter.set_result(process)
            return
        process.idle_since = asyncio.get_running_loop().time()
        self._idle.append(process)
        if len(self._idle) > self._cores and self._shedding is None:
            self._shed()

    def _shed(self) -> None:
        self._shedding = None
        loop = asyncio.get_running_loop()
        while len(self._idle) > self._cores:
            rest = self._idle[0].idle_since + IDLE_SECONDS - loop.time()
            if rest > 0:
                self._shedding = loop.call_later(rest, self._shed)
                return
            ending = own_task(self._idle.pop(0).end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)


class PythonProcess:
    def __init__(self, launchers: LauncherPool) -> None:
        self._launchers = launchers
        self._context: Context | None = None
        self._tree: ProcessTree
        self._commands = self._answers = -1
        self._buffer = bytearray()
        self._answer_max_bytes = ANSWER_MAX_BYTES
        self._ended: asyncio.Future[Ended] | None = None
        self._watching: asyncio.Future[Verdict]
        self._has_sent_call = True
        self._lives = LIVES
        self._ready: asyncio.Future[None]
        self.idle_since = 0.0
        """In the event loop's time."""

    @property
    def is_usable(self) -> bool:
        """Alive, idle, and not too old."""
        return not self._watching.done() and self._ended is None and self._lives > 0

    async def start(self) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        for descriptor in (self._commands, self._answers):
            os.set_blocking(descriptor, False)
        words = (sys.executable, "-m", "foliot.worker.executors.processes.python_child", str(commands), str(answers))
        first, later = without_settings()
        command = Command(words, first | {"PYTHONUNBUFFERED": "1"}, descriptors=(commands, answers), is_concealed=True)
        self._tree = ProcessTree(command, self._launchers, self._printed)
        try:
            await self._tree.__aenter__()
        except BaseException:
            for descriptor in (self._commands, self._answers):
                os.close(descriptor)
            raise
        finally:
            os.close(commands)
            os.close(answers)
        self._watching = own_task(self._tree.verdict())
        self._ready = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self._answers, self._read_answers)
        await self._send(Begin(sys.path, later))
        # A process that fails to start is returned all the same: the call then reports why.
        either: list[asyncio.Future[Any]] = [self._ready, self._watching]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)

    async def call(self, call: Call, context: Context) -> Attempted:
        self._lives -= 1
        self._context = context
        # Escaped inside JSON, each byte of the result may take six.
        self._answer_max_bytes = ANSWER_MAX_BYTES + 6 * call.result_max_bytes
        self._ended = ended = asyncio.get_running_loop().create_future()
        either: list[asyncio.Future[Any]] = [ended, self._watching]
        self._has_sent_call = False
        await self._send(call)
        self._has_sent_call = True
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            # It may have answered before it died.
            self._read_answers()
        # Output printed before the answer is in the pipe by now.
        self._tree.read_available()
        if not ended.done():
            return died(self._watching.result())
        self._context = self._ended = None
        answer: Ended = ended.result()
        return answer.attempted()

    async def stop(self, *, can_ask: bool) -> None:
        """Asks the function to stop if it can see that, then terminates its process."""
        ended = self._ended
        if ended is None:
            return
        # A large call may be only partly written to the pipe.
        can_ask = can_ask and self._has_sent_call
        if can_ask:
            await self._send(Stop())
            await asyncio.wait([ended], timeout=ASK_SECONDS)
        if ended.done():
            self._tree.read_available()
            self._context = self._ended = None
        else:
            await self._tree.terminate(END_SECONDS - ASK_SECONDS if can_ask else END_SECONDS)

    async def end(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._answers)
        loop.remove_writer(self._commands)
        await self._tree.end()
        self._watching.cancel()
        for descriptor in (self._commands, self._answers):
            os.close(descriptor)

    def _printed(self, chunk: bytes) -> None:
        if self._context is not None:
            self._context.write(chunk)

    def _read_answers(self) -> None:
        # At most a pipeful: a task that keeps writing here must not block the event loop.
        with suppress(BlockingIOError):
            for _ in range(PIPE_CHUNKS):
                chunk = os.read(self._answers, CHUNK)
                if not chunk:
                    asyncio.get_running_loop().remove_reader(self._answers)
                    return
                self._receive(chunk)

    def _receive(self, chunk: bytes) -> None:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line, self._buffer = bytes(self._buffer + end), bytearray()
            self._handle(line)
        self._buffer += rest
        if len(self._buffer) > self._answer_max_bytes:
            self._buffer = bytearray()
            self._reject_answer("longer than any answer can be")

    def _handle(self, line: bytes) -> None:
        try:
            answer = decode_answer(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._reject_answer(str(error))
            return
        if isinstance(answer, Ready):
            if not self._ready.done():
                self._ready.set_result(None)
        elif not isinstance(answer, Ended):
            if self._context is not None:
                self._context.progress(answer.share, answer.message)
        elif self._ended is not None and not self._ended.done():
            self._ended.set_result(answer)

    def _reject_answer(self, why: str) -> None:
        """The task wrote to the answer pipe. The process is not reused, or the rest could pass for the next answer."""
        self._lives = 0
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(
                Ended(
                    Ending.FAILED, error=error_of("AnswerNotUnderstood", f"its process sent an invalid answer: {why}")
                )
            )

    async def _send(self, what: Begin | Call | Stop) -> None:
        """Waits when the pipe is full: a payload may be larger than the pipe."""
        loop, left = asyncio.get_running_loop(), memoryview(encode(what) + b"\n")
        with suppress(BrokenPipeError):
            while left:
                try:
                    left = left[os.write(self._commands, left) :]
                except BlockingIOError:
                    writable = asyncio.Event()
                    loop.add_writer(self._commands, writable.set)
                    await writable.wait()
                    loop.remove_writer(self._commands)


def died(verdict: Verdict) -> Attempted:
    """The failure of an attempt whose process exited or was killed, for instance because memory ran out."""
    if verdict.refused is not None:
        return Attempted(Ending.FAILED, error=error_of("NotStarted", verdict.refused))
    if verdict.signal is not None:
        return Attempted(
            Ending.FAILED, error=error_of("KilledBySignal", f"its process was killed by {signal_name(verdict.signal)}")
        )
    return Attempted(Ending.FAILED, error=error_of("ProcessExited", f"its process ended with exit code {verdict.code}"))
