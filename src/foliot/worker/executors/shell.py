"""The built-in task `shell`: a command line, in a session of its own.

The command's process group dies with the attempt: on its end, a timeout or a stop. Output is capped while it is read, and a process that
holds the pipe open after the command has ended is not waited for. Nothing of the worker's own settings is in the command's environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, BinaryIO

import msgspec
from msgspec import Meta

from foliot.config import PREFIX
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor

CHUNK = 65_536
DRAIN_SECONDS = 1.0
TERMINATE_SECONDS = 5.0


class ShellPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1, max_length=100_000)]


def shell() -> Executor:
    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        asked = msgspec.convert(payload, ShellPayload)
        with _pipe_into(context.write) as (pipe, ended):
            process = await _start(asked.command, pipe)
            pipe.close()
            try:
                status = await process.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_SECONDS):
                        await ended.wait()
            except asyncio.CancelledError:
                await _terminate(process)
                raise
            finally:
                # Whatever the command left behind in its group.
                _signal_group(process, signal.SIGKILL)
        return judge(status)

    return execute


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def judge(status: int) -> Attempted:
    if status == 0:
        return Attempted(Ending.SUCCEEDED, result='{"exit_code":0}')
    if status < 0:
        return Attempted(Ending.FAILED, error=error_of("KilledBySignal", f"killed by {_signal_name(-status)}"))
    return Attempted(Ending.FAILED, error=error_of("ExitCode", f"exit code {status}"), causes=frozenset({status}))


@contextmanager
def _pipe_into(write: Callable[[bytes], None]) -> Iterator[tuple[BinaryIO, asyncio.Event]]:
    """A pipe of our own: asyncio's would make `wait` wait for everybody who holds it, and can't be let go of while somebody does."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def read() -> None:
        with suppress(BlockingIOError):
            if chunk := os.read(reading, CHUNK):
                write(chunk)
            else:
                loop.remove_reader(reading)
                ended.set()

    with os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0) as pipe:
        loop.add_reader(reading, read)
        try:
            yield pipe, ended
        finally:
            loop.remove_reader(reading)


async def _start(command: str, pipe: BinaryIO) -> Process:
    """Shielded: a process that came to be while its attempt was cancelled would have nobody to end it."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            "/bin/sh", "-c", command, stdin=DEVNULL, stdout=pipe, stderr=STDOUT, start_new_session=True, env=clean_environment()
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _terminate(await starting)
        raise


async def _terminate(process: Process) -> None:
    """Asks first; what does not go in time is killed."""
    _signal_group(process, signal.SIGTERM)
    # Not asyncio.timeout: in a task that is being cancelled, as here, early releases of Python 3.11 let it raise CancelledError instead.
    ending = asyncio.ensure_future(process.wait())
    await asyncio.wait([ending], timeout=TERMINATE_SECONDS)
    _signal_group(process, signal.SIGKILL)
    await ending


def _signal_group(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
