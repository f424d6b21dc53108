"""The Python process that runs tasks declared with `process=True`.

Started as `python -m foliot.worker.executors.processes.python_child COMMANDS ANSWERS`, with two descriptors. It runs
one call at a time on the main thread, so that functions may handle signals; a second thread receives requests to stop.
It exits when the worker closes the pipe. The launcher has connected standard output to the attempt's output.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import io
import os
import queue
import signal
import sys
import threading
from collections.abc import Collection, Container
from contextlib import suppress
from functools import cache
from typing import Any, BinaryIO, NoReturn, TextIO

from foliot.errors import Invalid
from foliot.model.outcome import Attempted
from foliot.process_hardening import die_with_parent, harden
from foliot.sdk.app import Function, Task
from foliot.sdk.context import Context
from foliot.sdk.signature import Signature
from foliot.worker.executors.base import misfit
from foliot.worker.executors.processes.messages import (
    Begin,
    Call,
    Ended,
    Progressed,
    Ready,
    Stop,
    decode_command,
    encode,
)
from foliot.worker.executors.python import SUCCEEDED_WITH_NOTHING, context_argument, succeeded
from foliot.worker.executors.task_errors import classify_error
from foliot.worker.logged_output import EMITS, capture_records

sending = threading.Lock()


class ChildContext(Context):
    """Forwards progress to the worker."""

    __slots__ = ("_answers",)

    def __init__(self, call: Call, answers: int) -> None:
        super().__init__(
            run_id=call.run_id, token=call.token, attempt=call.attempt, task=call.task, on_output=write_output
        )
        self.upstream, self.signal, self.stored_tick = call.upstream, call.signal, call.tick
        self._answers = answers

    def progress(self, share: float, message: str = "") -> None:
        super().progress(share, message)
        if self.progress_made is not None:
            send(self._answers, Progressed(self.progress_made.share, self.progress_made.message))


class ChildStream(io.TextIOWrapper):
    """Standard output or error of the process. Drops what a thread prints that an earlier attempt has left running: it
    would stand in the output of another run."""

    def __init__(self, stream: TextIO, left_running: Container[int]) -> None:
        super().__init__(
            stream.buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=True
        )
        self._left_running = left_running

    def write(self, text: str) -> int:
        # The output has the records already that a log handler writes.
        is_unwanted = threading.get_ident() in self._left_running or sys._getframe(1).f_code is EMITS  # noqa: SLF001
        return len(text) if is_unwanted else super().write(text)


class ChildWriter:
    """Where log records go: to the output of the process, which is that of its attempt."""

    def __init__(self, left_running: Container[int]) -> None:
        self._left_running = left_running

    def get(self) -> ChildWriter:
        return self

    def write_output(self, chunk: bytes) -> bool:
        if threading.get_ident() not in self._left_running:
            write_output(chunk)
        return True


class PythonChild:
    def __init__(self, commands: BinaryIO, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self._context: ChildContext | None = None
        self._left_running = set[int]()
        """Threads that were there before the attempt began, other than ours."""

    def run(self) -> None:
        listener = threading.Thread(target=self._listen, name="worker", daemon=True)
        listener.start()
        sys.stdout, sys.stderr = (ChildStream(stream, self._left_running) for stream in (sys.stdout, sys.stderr))
        with capture_records(ChildWriter(self._left_running), is_echoed=False):
            self._run_calls({threading.get_ident(), listener.ident})

    def _run_calls(self, own_threads: Collection[int | None]) -> NoReturn:
        while True:
            call = self._calls.get()
            self._left_running.clear()
            self._left_running.update(
                thread.ident for thread in threading.enumerate() if thread.ident not in own_threads and thread.ident
            )
            self._context = ChildContext(call, self._answers)
            attempted = attempt(call, self._context)
            self._context = None
            flush()
            send(self._answers, Ended.of(attempted))

    def _listen(self) -> None:
        for line in self._commands:
            match decode_command(line):
                case Begin(path, environment):
                    sys.path[:] = path
                    os.environ.update(environment)
                    send(self._answers, Ready())
                case Call() as call:
                    self._calls.put(call)
                case Stop():
                    if (context := self._context) is not None:
                        context.ask_to_stop()
        # The worker is gone or needs us no more. Exit at once: threads of the task could block a normal exit for ever.
        os._exit(0)


def attempt(call: Call, context: Context) -> Attempted:
    try:
        signature = find(call.module, call.name)
        try:
            arguments = signature.bind(call.payload)
        except Invalid as error:
            return misfit(error)
        result = signature.call(**arguments, **context_argument(signature.function, context))
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
    except BaseException as error:
        # A task that calls sys.exit() fails. This process keeps running.
        return classify_error(error)
    return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, call.result_max_bytes)


def find(module: str, name: str) -> Signature:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found.signature if isinstance(found, Task) else signature_of(found)


@cache
def signature_of(function: Function) -> Signature:
    return Signature(function)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def send(answers: int, message: Ready | Progressed | Ended) -> None:
    """Sends a message. The lock keeps progress from several threads apart."""
    with sending:
        left = encode(message) + b"\n"
        while left:
            left = left[os.write(answers, left) :]


def write_output(chunk: bytes) -> None:
    flush()
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            # The task closed it.
            continue


def main() -> None:
    harden()
    # In case the worker and the launcher are both killed: a busy function may keep the listening thread from running.
    with suppress(OSError):
        die_with_parent(signal.SIGKILL)
    commands, answers = (int(word) for word in sys.argv[1:3])
    for descriptor in (commands, answers):
        # Processes that a task starts must not hold the pipes open.
        os.set_inheritable(descriptor, False)
    PythonChild(os.fdopen(commands, "rb"), answers).run()


if __name__ == "__main__":
    main()
