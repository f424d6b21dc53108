"""Launchers are reused, replaced when they die, started on demand, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from itertools import count

import psutil
import pytest

from foliot.config import Config
from foliot.model.outcome import Attempted, Ending
from foliot.worker.executors.processes import launcher_pool as module
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from foliot.worker.executors.shell import shell
from tests.support.containment import gone, launchers_in, require_means, sleepers
from tests.support.contexts import KeptContext
from tests.support.waiting import until

MANY = 500
AT_ONCE = 8
unique = (f"{900 + number}.{os.getpid()}" for number in count())


@pytest.fixture(params=["bubblewrap", "cgroup", "launcher"])
async def launchers(request: pytest.FixtureRequest) -> AsyncIterator[LauncherPool]:
    require_means(request.param)
    async with launchers_in(choose(Config(containment=request.param))) as found:
        yield found


async def run(
    launchers: LauncherPool, command: str, context: KeptContext | None = None, sandbox: str = "none"
) -> Attempted:
    return await shell(Config(), launchers)({"command": command, "sandbox": sandbox}, context or KeptContext())


async def run_many(launchers: LauncherPool, number: int) -> None:
    left = iter(range(number))

    async def one_after_another() -> None:
        for index in left:
            context = KeptContext()
            assert (await run(launchers, f"echo {index}", context)).ending is Ending.SUCCEEDED
            assert context.output == f"{index}\n".encode()

    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children()}


def family_of(pids: set[int]) -> list[psutil.Process]:
    found = [psutil.Process(pid) for pid in pids]
    return found + [child for process in found for child in process.children(recursive=True)]


async def test_many_commands_use_the_same_launchers_and_leave_no_descriptor_and_no_zombie(
    launchers: LauncherPool,
) -> None:
    before = children()
    await run_many(launchers, 4 * AT_ONCE)
    started = children() - before
    assert 1 <= len(started) <= AT_ONCE
    descriptors, of_theirs = psutil.Process().num_fds(), {pid: psutil.Process(pid).num_fds() for pid in started}
    await run_many(launchers, MANY)
    assert children() - before == started
    assert psutil.Process().num_fds() <= descriptors
    assert {pid: psutil.Process(pid).num_fds() for pid in started} == of_theirs
    assert [process for process in family_of(started) if process.status() == psutil.STATUS_ZOMBIE] == []
    await launchers.close()
    assert children() == before


async def test_sandboxes_are_used_once_and_leave_nothing_behind(launchers: LauncherPool) -> None:
    require_means("bubblewrap")
    for _ in range(3):
        context = KeptContext()
        assert (
            await run(launchers, "ls /tmp; touch /tmp/left; echo $$", context, "bubblewrap")
        ).ending is Ending.SUCCEEDED
        assert b"left" not in context.output
    started = children()
    assert not [process for process in family_of(started) if process.name() == "bwrap"]


async def test_launchers_start_on_demand_and_idle_ones_end(
    launchers: LauncherPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.1)
    before = children()
    await run(launchers, "true")
    assert children() != before

    async def all_ended() -> bool:
        return children() == before

    await until(all_ended)
    assert (await run(launchers, "true")).ending is Ending.SUCCEEDED


async def test_the_death_of_launchers_ends_their_commands_and_they_are_replaced(launchers: LauncherPool) -> None:
    mark, before = next(unique), children()
    contexts = [KeptContext() for _ in range(3)]
    running = [
        asyncio.ensure_future(run(launchers, f"echo begun; sleep {mark} & sleep {mark}", context))
        for context in contexts
    ]
    for context in contexts:
        await context.prints(b"begun")
    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)
    for attempted in await asyncio.gather(*running):
        assert attempted.error is not None
        assert attempted.error.message == "killed by SIGKILL"
    assert gone(mark)
    await run_many(launchers, AT_ONCE)


async def test_a_launcher_that_died_while_idle_is_not_used(launchers: LauncherPool) -> None:
    before = children()
    await run(launchers, "true")
    for pid in children() - before:
        os.kill(pid, signal.SIGKILL)
        await asyncio.to_thread(os.waitid, os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert (await run(launchers, "true")).ending is Ending.SUCCEEDED


async def test_a_result_descriptor_may_have_any_number(launchers: LauncherPool) -> None:
    """This includes the number of a descriptor that the launcher uses itself."""
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(40)]
    try:
        while True:
            attempted = await run(launchers, "echo ${FOLIOT_RESULT##*/} > $FOLIOT_RESULT")
            assert attempted.ending is Ending.SUCCEEDED, attempted.error
            assert (attempted.result or "").isdigit()
            if not held:
                return
            os.close(held.pop())
    finally:
        for descriptor in held:
            os.close(descriptor)


async def test_a_command_leaves_nothing_for_the_next_one(launchers: LauncherPool) -> None:
    mark = next(unique)
    for _ in range(5):
        await run(
            launchers,
            f"setsid sh -c 'setsid sleep {mark} & exit' >/dev/null 2>&1 & sleep {mark} >/dev/null 2>&1 & exit 0",
        )
        assert not sleepers(mark)
