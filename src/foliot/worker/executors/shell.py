"""The built-in task `shell`: runs a command line in /bin/sh, or a program with arguments.

Every process that a command starts ends with its attempt: when the command ends, on a timeout, a cancel, or the
worker's death; `processes/containment.py` says how. Output is capped while it is read. If a process holds the output
open after the command has ended, the attempt waits one second. `processes/environment.py` builds the environment, which
holds none of the worker's settings. `processes/command_files.py` passes upstream results in and the result out.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from foliot.config import Config
from foliot.errors import Invalid
from foliot.model.outcome import Attempted, Ending, error_of
from foliot.model.payloads import ShellPayload, payload_of
from foliot.sdk.context import Context
from foliot.worker.executors.base import Executor, invalid_payload
from foliot.worker.executors.processes.command_files import CommandFiles, result_too_large
from foliot.worker.executors.processes.environment import clean_environment
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from foliot.worker.executors.processes.process_tree import Command, ProcessTree, Verdict
from foliot.worker.executors.processes.sandbox import Sandbox, SandboxUnavailable, sandbox_for


def shell(config: Config, launchers: LauncherPool, hidden: Sequence[Path] = ()) -> Executor:
    """`hidden`: paths that a sandboxed command must not see."""

    async def execute(payload: dict[str, Any], context: Context) -> Attempted:
        try:
            asked = payload_of(payload, ShellPayload)
            sandbox = sandbox_for(asked, config, launchers.containment, hidden)
        except Invalid as error:
            return invalid_payload(error)
        except SandboxUnavailable as error:
            # Retryable: another worker may offer the sandbox.
            return Attempted(Ending.FAILED, error=error_of(type(error).__name__, str(error)))
        with CommandFiles(context) as files:
            async with ProcessTree(command_for(asked, config, sandbox, files), launchers, context.write) as tree:
                try:
                    verdict = await tree.verdict()
                except asyncio.CancelledError:
                    await tree.terminate()
                    raise
                # The command ended in time, even if one of its children still prints past the timeout.
                with suppress(asyncio.CancelledError):
                    await tree.drained()
            if verdict.has_too_large_result:
                return result_too_large(config.result_max_bytes)
            return failed(verdict) or files.read_result(config.result_max_bytes)

    return execute


def command_for(asked: ShellPayload, config: Config, sandbox: Sandbox, files: CommandFiles) -> Command:
    has_own_tmp = sandbox.kind == "bubblewrap"
    scratch = {"HOME": "/tmp", "TMPDIR": "/tmp"} if has_own_tmp else {}  # noqa: S108
    return Command(
        argv=asked.words,
        environment=clean_environment(config, scratch | asked.environment | files.environment),
        directory=asked.cwd or ("/tmp" if has_own_tmp else ""),  # noqa: S108
        stdin=asked.stdin.encode("utf-8", "surrogatepass"),
        limits=sandbox.limits,
        tree_limits=sandbox.tree_limits,
        wrapper=sandbox.wrapper,
        user=sandbox.user,
        descriptors=files.descriptors,
        result_max_bytes=max(config.result_max_bytes, 1),
        scratch=sandbox.scratch,
    )


def failed(verdict: Verdict) -> Attempted | None:
    if verdict.refused is not None:
        return Attempted(Ending.FAILED, error=error_of("NotStarted", verdict.refused))
    if verdict.exceeded is not None:
        return Attempted(
            Ending.FAILED,
            error=error_of("LimitExceeded", f"killed: all its processes together used {verdict.exceeded}"),
        )
    if verdict.signal is not None:
        return Attempted(Ending.FAILED, error=error_of("KilledBySignal", f"killed by {signal_name(verdict.signal)}"))
    if verdict.code:
        return Attempted(
            Ending.FAILED, error=error_of("ExitCode", f"exit code {verdict.code}"), causes=frozenset({verdict.code})
        )
    return None


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
