"""A process that starts commands, as a worker does, without end: to be killed. Run as `python -m tests.support.starter MARK`."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace

import uvloop

from foliot.config import Config
from foliot.worker.executors.contained import Command, Contained
from foliot.worker.executors.containment import Containment, choose
from foliot.worker.executors.guard import Guard


async def start_commands(mark: str) -> None:
    guard = Guard(mark)
    await guard.start()
    containment = replace(choose(Config(containment="bubblewrap")), mark=guard.environment)
    os.write(sys.stdout.fileno(), b"ready\n")
    while True:
        await asyncio.gather(*(start_one(containment, mark) for _ in range(3)))


async def start_one(containment: Containment, mark: str) -> None:
    command = Command(("/bin/sh", "-c", f"exec sleep 0.01 # {mark}"), {"PATH": "/usr/bin:/bin"})
    async with Contained(command, containment, lambda _: None) as contained:
        await contained.verdict()


if __name__ == "__main__":
    uvloop.run(start_commands(sys.argv[1]))
