"""The built-in task `shell`: a command line, in a session of its own.

The command's process group dies with the attempt: on its end, a timeout or a stop. Output is capped while it is read, and a process that
holds the pipe open after the command has ended is not waited for. Nothing of the worker's own settings is in the command's environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from foliot.config import PREFIX
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.worker.executors.base import Executor
from foliot.worker.executors.output import CappedOutput

CHUNK = 65_536
DRAIN_SECONDS = 1.0
TERMINATE_SECONDS = 5.0


class ShellPayload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: Annotated[str, Meta(min_length=1, max_length=100_000)]


def shell(*, output_max_bytes: int) -> Executor:
    async def execute(payload: dict[str, Any]) -> Attempted:
        asked = msgspec.convert(payload, ShellPayload)
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", asked.command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True, env=clean_environment()
        )
        output = CappedOutput(output_max_bytes)
        reading = asyncio.create_task(_read(process, output), name=f"read output of {process.pid}")
        try:
            status = await process.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await asyncio.shield(reading)
        except asyncio.CancelledError:
            await _terminate(process)
            raise
        finally:
            # Whatever the command left behind in its group.
            _signal_group(process, signal.SIGKILL)
            reading.cancel()
            await asyncio.wait([reading])
        return judge(status, output.value())

    return execute


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def judge(status: int, output: bytes) -> Attempted:
    if status == 0:
        return Attempted(Ending.SUCCEEDED, result='{"exit_code":0}', output=output)
    if status < 0:
        return Attempted(Ending.FAILED, error=error_of("KilledBySignal", f"killed by {_signal_name(-status)}"), output=output)
    return Attempted(Ending.FAILED, error=error_of("ExitCode", f"exit code {status}"), output=output)


async def _read(process: Process, output: CappedOutput) -> None:
    assert process.stdout is not None  # noqa: S101
    while chunk := await process.stdout.read(CHUNK):
        output.write(chunk)


async def _terminate(process: Process) -> None:
    """Asks first; what does not go in time is killed."""
    _signal_group(process, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(TERMINATE_SECONDS):
            await process.wait()
    _signal_group(process, signal.SIGKILL)
    await process.wait()


def _signal_group(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
