"""Shell commands in a sandbox and in a process group of their own, compared with a bare fork, exec and wait of the same
command."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from time import perf_counter

from benchmarks.bench import Bench
from benchmarks.draining import drain
from benchmarks.report import Result, Row, at_least
from foliot.worker.executors.processes.containment import find_bubblewrap

NAME = "commands"
TITLE = "the shell command `true`, queued first, then run by one worker process"
SLOTS = 8


async def measure(bench: Bench) -> Result:
    commands = bench.size(2000, full=10_000, tiny=10)
    sandboxed_commands = bench.size(800, full=3000, tiny=5)
    before = await bare(commands // 4)
    group = await drain(bench, commands, task="shell", slots=SLOTS, payload=_payload("none"), containment="launcher")
    bubblewrap, why_not = find_bubblewrap()
    sandboxed = None
    if bubblewrap:
        sandboxed = await drain(bench, sandboxed_commands, task="shell", slots=SLOTS, payload=_payload("bubblewrap"))
    after = await bare(commands // 4)
    raw = (before[0] + after[0]) / 2
    rows = [
        Row(name, {"per_second": found.per_second, "bare": raw, "ratio": found.per_second / raw, **found.cpu})
        for name, found in (("in a process group", group), ("sandboxed (bubblewrap)", sandboxed))
        if found is not None
    ]
    return Result(
        [
            *rows,
            Row(f"bare fork and exec, {SLOTS} at once", {"per_second": raw, "worker_us": (before[1] + after[1]) / 2}),
        ],
        [
            at_least("commands a second in a process group", group.per_second, 400),
            at_least("sandboxed commands a second", sandboxed.per_second if sandboxed else None, 100),
        ],
        {"commands": commands, "sandboxed": sandboxed_commands, "slots": SLOTS},
        [] if bubblewrap else [f"not sandboxed: {why_not}"],
    )


async def bare(commands: int) -> tuple[float, float]:
    """Starts commands with nothing but asyncio, with the same concurrency. Returns commands a second, and their CPU
    time with ours in microseconds."""
    left = iter(range(commands))

    async def one_after_another() -> None:
        for _ in left:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh", "-c", "true", stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
            )
            await process.communicate()

    began, before = perf_counter(), os.times()
    await asyncio.gather(*(one_after_another() for _ in range(SLOTS)))
    seconds, after = perf_counter() - began, os.times()
    # The first four: this process's own time and that of ended children.
    used = sum(after[:4]) - sum(before[:4])
    return commands / seconds, used / commands * 1e6


def _payload(sandbox: str) -> Callable[[int], str]:
    text = json.dumps({"command": "true", "sandbox": sandbox})
    return lambda _: text
