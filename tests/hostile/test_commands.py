"""A real worker process and malicious commands: each ends in time and in the right state, leaves nothing behind, and
the worker stays small.

A SIGKILL of the worker also kills everything that its commands and its Python processes had started.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count

import psutil
import pytest

from foliot.model.run import NewRun
from foliot.model.states import RunState
from foliot.store.store import Store
from foliot.worker.executors.processes.process_tree import END_SECONDS
from tests.support.containment import gone, require_means, sleepers
from tests.support.processes import FoliotProcess
from tests.support.waiting import until
from tests.support.workers import ended, submit

pytestmark = pytest.mark.process

MEBIBYTE = 1_048_576
# Allows for nine commands at once, and for other tests on the machine.
SLACK_SECONDS = 20.0
unique = (f"{500 + number}.{os.getpid()}" for number in count())
DAEMON = "setsid sh -c 'setsid sleep {mark} >/dev/null 2>&1 & exit' >/dev/null 2>&1 &"


@pytest.fixture(params=["bubblewrap", "cgroup", "launcher"])
async def worker(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[FoliotProcess]:
    require_means(request.param)
    settings = {"FOLIOT_DATABASE_URL": database_url, "FOLIOT_CONTAINMENT": request.param, "FOLIOT_POLL_SECONDS": "0.1"}
    async with FoliotProcess(
        "worker", "tests.worker.executors.processes.process_tasks:app", environment=settings
    ) as process:
        await process.event(
            "ContainmentIsWeak" if request.param == "launcher" else "ContainmentChosen", means=request.param
        )
        await process.event("ProcessStarted")
        yield process
        process.signal(signal.SIGTERM)
        await process.wait()


async def run(store: Store, command: str, *, timeout: float = 30.0) -> NewRun:
    options = json.dumps({"retries": 0, "timeout_seconds": timeout})
    return await submit(store, "shell", payload=json.dumps({"command": command}), options=options)


async def test_each_command_ends_in_time_and_in_the_right_state(store: Store, worker: FoliotProcess) -> None:
    mark, limit = next(unique), 4.0
    failed_by_time, failed = (RunState.FAILED, "timeout", "Timeout"), (RunState.FAILED, "error")
    expected = {
        f"echo begun; sleep {mark} & wait": (*failed_by_time, "begun\n"),
        f"echo begun; trap '' TERM; while :; do sleep {mark}; done": (*failed_by_time, "begun\n"),
        f"echo begun; {DAEMON.format(mark=mark)} echo done": (RunState.SUCCEEDED, None, None, "begun\ndone\n"),
        "yes": (*failed_by_time, "y\n"),
        "cat /dev/urandom": (*failed_by_time, ""),
        "head -c 200000000 /dev/zero | tr '\\0' x": (RunState.SUCCEEDED, None, None, "x"),
        f"echo begun; kill -9 $PPID; sleep {mark}": (*failed, "KilledBySignal", "begun\n"),
        "echo begun; exit 137": (*failed, "ExitCode", "begun\n"),
        "echo begun; kill -STOP $$": (*failed_by_time, "begun\n"),
    }
    timeouts = {command: 120.0 if what[0] is RunState.SUCCEEDED else limit for command, what in expected.items()}
    runs = {command: await run(store, command, timeout=timeouts[command]) for command in expected}
    for command, (state, reason, kind, output) in expected.items():
        view = await ended(store, runs[command])
        assert (command, view.state, view.reason) == (command, state, reason)
        assert (view.error or {}).get("kind") == kind
        assert (view.output or b"").startswith(output.encode()), command
        assert view.started_at is not None
        assert view.finished_at is not None
        if state is RunState.FAILED:
            assert view.finished_at - view.started_at < timedelta(seconds=limit + END_SECONDS + SLACK_SECONDS), command
    assert gone(mark)
    assert psutil.Process(worker.pid).memory_info().rss < 200 * MEBIBYTE


def name_of(process: psutil.Process) -> str:
    """Empty for a process that has ended meanwhile."""
    try:
        return str(process.name())
    except psutil.NoSuchProcess:
        return ""


async def test_commands_die_with_a_killed_worker(store: Store, worker: FoliotProcess) -> None:
    mark = next(unique)
    await run(store, f"{DAEMON.format(mark=mark)} trap '' TERM HUP INT; sleep {mark} & sleep {mark}; sleep {mark}")
    await submit(store, "stubborn", payload=json.dumps({"mark": mark}))

    async def all_started() -> bool:
        return sum("sleep" in name_of(process) for process in sleepers(mark)) >= 4

    await until(all_started)
    family = psutil.Process(worker.pid).children(recursive=True)
    worker.signal(signal.SIGKILL)
    await worker.wait()
    assert gone(mark)

    async def launchers_are_gone() -> bool:
        return not psutil.wait_procs(family, timeout=0)[1]

    await until(launchers_are_gone)
