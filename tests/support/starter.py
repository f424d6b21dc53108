"""Starts commands in a loop, as a worker does, until it is killed. Usage: `... -m tests.support.starter MEANS MARK`."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace

import msgspec
import uvloop

from foliot.config import Config
from foliot.worker.executors.processes.containment import choose
from foliot.worker.executors.processes.launcher_pool import LauncherPool
from foliot.worker.executors.processes.orphan_cleanup import OrphanCleanup
from foliot.worker.executors.processes.process_tree import Command, ProcessTree


async def start_commands(means: str, mark: str) -> None:
    orphan_cleanup = OrphanCleanup(mark)
    await orphan_cleanup.start()
    containment = replace(choose(msgspec.convert({"containment": means}, Config)), mark=mark)
    launchers = LauncherPool(containment)
    os.write(sys.stdout.fileno(), b"ready\n")
    while True:
        await asyncio.gather(*(start_one(launchers, mark) for _ in range(3)))


async def start_one(launchers: LauncherPool, mark: str) -> None:
    """Short, so that there is always one about to start."""
    command = Command(("/bin/sh", "-c", f"sleep 60; : {mark}"), {"PATH": "/usr/bin:/bin"})
    async with ProcessTree(command, launchers, lambda _: None):
        await asyncio.sleep(0.03)


if __name__ == "__main__":
    uvloop.run(start_commands(*sys.argv[1:3]))
