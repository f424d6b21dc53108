"""Python tasks in processes of their own (`process=True`): for code that must be killable, or that keeps a core busy.

The processes are started by exec, kept warm and used again, one attempt at a time each. A timeout or a cancel asks (`ctx.should_stop()`),
then ends the process with all it started, and so does the worker's death. A process that dies by itself is a failed attempt, and replaced.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from typing import Any

import msgspec

from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.app import Function
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor
from foliot.worker.executors.contained import CHUNK, END_SECONDS, Command, Contained, Verdict
from foliot.worker.executors.containment import Containment
from foliot.worker.executors.environment import without_settings
from foliot.worker.executors.messages import Begin, Call, Ended, Stop, decode_answer, encode
from foliot.worker.executors.python import asks_for_context
from foliot.worker.executors.shell import signal_name

ASK_SECONDS = 2.0
"""What a function that can ask whether it should stop gets for it, before its process is told to end."""
LIVES = 1000
"""Attempts that a process runs before a fresh one takes its place: leaks of tasks stay small."""


def in_a_process(function: Function, processes: ProcessPool, *, result_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        call = Call(
            module=function.__module__, name=function.__qualname__, payload=payload, run_id=context.run_id, token=context.token,
            attempt=context.attempt, task=context.task, result_max_bytes=result_max_bytes,
            upstream=dict(context.upstream), signal=context.signal,
        )  # fmt: skip
        process = await processes.take()
        try:
            attempted = await process.call(call, context)
        except asyncio.CancelledError:
            await process.stop(can_ask=asks_for_context(function))
            raise
        finally:
            await processes.give_back(process)
        return attempted

    return execute


class ProcessPool:
    """Grows with the attempts under way; of those that are idle it keeps as many as there are cores."""

    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._idle: list[PythonProcess] = []
        self._idle_max = os.cpu_count() or 2

    async def take(self) -> PythonProcess:
        while self._idle:
            # The one used last is the warmest.
            process = self._idle.pop()
            if process.is_usable:
                return process
            await process.end()
        process = PythonProcess(self._containment)
        await process.start()
        return process

    async def give_back(self, process: PythonProcess) -> None:
        if process.is_usable and len(self._idle) < self._idle_max:
            self._idle.append(process)
        else:
            await process.end()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().end()


class PythonProcess:
    def __init__(self, containment: Containment) -> None:
        self._containment = containment
        self._context: Context | None = None
        self._contained: Contained
        self._commands = self._answers = -1
        self._said = bytearray()
        self._ended: asyncio.Future[Ended] | None = None
        self._watching: asyncio.Future[Verdict]
        self._has_heard = True
        self._lives = LIVES

    @property
    def is_usable(self) -> bool:
        """Alive, at rest, and not too old."""
        return not self._watching.done() and self._ended is None and self._lives > 0

    async def start(self) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        for descriptor in (self._commands, self._answers):
            os.set_blocking(descriptor, False)
        words = (sys.executable, "-m", "foliot.worker.executors.child", str(commands), str(answers))
        environment = without_settings() | {"PYTHONUNBUFFERED": "1"}
        command = Command(words, environment, descriptors=(commands, answers))
        self._contained = Contained(command, self._containment, self._printed)
        try:
            await self._contained.__aenter__()
        except BaseException:
            for descriptor in (self._commands, self._answers):
                os.close(descriptor)
            raise
        finally:
            os.close(commands)
            os.close(answers)
        self._watching = asyncio.ensure_future(self._contained.verdict())
        asyncio.get_running_loop().add_reader(self._answers, self._read_answers)
        await self._send(Begin(sys.path))

    async def call(self, call: Call, context: Context) -> Attempted:
        self._lives -= 1
        self._context = context
        self._ended = ended = asyncio.get_running_loop().create_future()
        either: list[asyncio.Future[Any]] = [ended, self._watching]
        self._has_heard = False
        await self._send(call)
        self._has_heard = True
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            # It may have answered and died.
            self._read_answers()
        # All that was printed before the answer is in the pipe by now.
        self._contained.read_what_is_there()
        if not ended.done():
            return died(self._watching.result())
        self._context = self._ended = None
        answer: Ended = ended.result()
        return answer.attempted()

    async def stop(self, *, can_ask: bool) -> None:
        """Asks first, if there is somebody to ask. What does not end is ended with its process."""
        ended = self._ended
        if ended is None:
            return
        # Half a call may be in the pipe, if it is a large one.
        can_ask = can_ask and self._has_heard
        if can_ask:
            await self._send(Stop())
            await asyncio.wait([ended], timeout=ASK_SECONDS)
        if ended.done():
            self._contained.read_what_is_there()
            self._context = self._ended = None
        else:
            await self._contained.ask_and_wait(END_SECONDS - ASK_SECONDS if can_ask else END_SECONDS)

    async def end(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._answers)
        loop.remove_writer(self._commands)
        await self._contained.end()
        self._watching.cancel()
        for descriptor in (self._commands, self._answers):
            os.close(descriptor)

    def _printed(self, chunk: bytes) -> None:
        if self._context is not None:
            self._context.write(chunk)

    def _read_answers(self) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(self._answers, CHUNK):
                self._said += chunk
            asyncio.get_running_loop().remove_reader(self._answers)
        *lines, rest = self._said.split(b"\n")
        if lines:
            self._said = rest
        for line in lines:
            self._take(bytes(line))

    def _take(self, line: bytes) -> None:
        try:
            answer = decode_answer(line)
        except msgspec.DecodeError as error:
            # The task wrote into our pipe.
            answer = Ended(Ending.FAILED, error=error_of("AnswerNotUnderstood", str(error)))
        if not isinstance(answer, Ended):
            if self._context is not None:
                self._context.progress(answer.share, answer.message)
        elif self._ended is not None and not self._ended.done():
            self._ended.set_result(answer)

    async def _send(self, what: Begin | Call | Stop) -> None:
        """A payload may be larger than a pipe holds."""
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
    """A function that ended its own process, or was killed: the kernel does so when memory runs out."""
    if verdict.refused is not None:
        return Attempted(Ending.FAILED, error=error_of("NotStarted", verdict.refused))
    if verdict.signal is not None:
        return Attempted(Ending.FAILED, error=error_of("KilledBySignal", f"its process was killed by {signal_name(verdict.signal)}"))
    return Attempted(Ending.FAILED, error=error_of("ProcessExited", f"its process ended with exit code {verdict.code}"))
