"""A worker that is killed at any moment while it starts commands leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from asyncio.subprocess import PIPE

import pytest

from foliot.model.ids import new_id
from foliot.worker.executors.processes.orphan_cleanup import OrphanCleanup
from foliot.worker.executors.processes.sweeper import MARK_VARIABLE, processes_marked
from tests.support.containment import gone, require_means
from tests.support.waiting import until

KILLS = 6
START_SECONDS = 0.1
"""About what the start of a command takes: each moment of it is a moment to be killed in."""

pytestmark = pytest.mark.process


def bearers(mark: str) -> list[int]:
    return processes_marked(f"{MARK_VARIABLE}={mark}".encode())


async def nothing_left(mark: str) -> None:
    async def is_clear() -> bool:
        return not bearers(mark)

    await until(is_clear)


@pytest.mark.parametrize("means", ["bubblewrap", "cgroup", "launcher"])
async def test_workers_killed_while_they_start_commands_leave_nothing(means: str) -> None:
    require_means(means)
    marks = [str(new_id()) for _ in range(KILLS)]
    for mark in marks:
        starter = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.starter", means, mark, stdout=PIPE
        )
        assert starter.stdout is not None
        assert await starter.stdout.readline() == b"ready\n"
        await asyncio.sleep(random.uniform(0, START_SECONDS))
        starter.kill()
        await starter.wait()
    for mark in marks:
        await nothing_left(mark)
        assert gone(mark)


async def test_sweep_kills_marked_processes_and_no_others() -> None:
    mark, other = str(new_id()), str(new_id())
    orphan_cleanup = OrphanCleanup(mark)
    await orphan_cleanup.start()
    marked = [
        await asyncio.create_subprocess_exec("sleep", "60", env={MARK_VARIABLE: value}) for value in (mark, f"{mark}.7")
    ]
    unmarked = await asyncio.create_subprocess_exec("sleep", "60", env={MARK_VARIABLE: other})
    orphan_cleanup.release_pipe()
    assert [await process.wait() for process in marked] == [-signal.SIGKILL, -signal.SIGKILL]
    assert bearers(other) == [unmarked.pid]
    unmarked.kill()
    await unmarked.wait()
    await orphan_cleanup.stop()


async def test_orphan_cleanup_that_is_stopped_kills_nothing() -> None:
    mark = str(new_id())
    orphan_cleanup = OrphanCleanup(mark)
    await orphan_cleanup.start()
    marked = await asyncio.create_subprocess_exec("sleep", "60", env={MARK_VARIABLE: mark})
    await orphan_cleanup.stop()
    assert bearers(mark) == [marked.pid]
    marked.kill()
    await marked.wait()
