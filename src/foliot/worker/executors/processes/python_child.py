"""The Python process that runs tasks declared with `process=True`.

Started as `python -m foliot.worker.executors.processes.python_child COMMANDS ANSWERS`, with two descriptors. It runs
one call at a time on the main thread, so that functions may handle signals; a second thread receives requests to stop.
It exits when the worker closes the pipe. The launcher has connected standard output to the attempt's output.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import queue
import signal
import sys
import threading
from contextlib import suppress
from typing import Any, BinaryIO

from foliot.concealment import conceal, die_with_parent
from foliot.model.outcome import Attempted
from foliot.sdk.app import Function, Task
from foliot.sdk.context import Context
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

sending = threading.Lock()


class ChildContext(Context):
    """Forwards progress to the worker."""

    __slots__ = ("_answers",)

    def __init__(self, call: Call, answers: int) -> None:
        super().__init__(
            run_id=call.run_id, token=call.token, attempt=call.attempt, task=call.task, on_output=write_output
        )
        self.upstream, self.signal = call.upstream, call.signal
        self._answers = answers

    def progress(self, share: float, message: str = "") -> None:
        super().progress(share, message)
        if self.progress_made is not None:
            send(self._answers, Progressed(self.progress_made.share, self.progress_made.message))


class PythonChild:
    def __init__(self, commands: BinaryIO, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self._context: ChildContext | None = None

    def run(self) -> None:
        threading.Thread(target=self._listen, name="worker", daemon=True).start()
        while True:
            call = self._calls.get()
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
        function = find(call.module, call.name)
        result = function(**call.payload, **context_argument(function, context))
        if inspect.isawaitable(result):
            result = asyncio.run(_awaited(result))
    except BaseException as error:
        # A task that calls sys.exit() fails. This process keeps running.
        return classify_error(error)
    return SUCCEEDED_WITH_NOTHING if result is None else succeeded(result, call.result_max_bytes)


def find(module: str, name: str) -> Function:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    function: Function = found.function if isinstance(found, Task) else found
    return function


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
    conceal()
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
