"""The tasks that benchmarks run."""

from __future__ import annotations

import asyncio
import functools
import time

import foliot
from benchmarks.effects import Recorder

app = foliot.App()


@app.task
async def noop(**_: object) -> None:
    return None


@app.task
def plain(**_: object) -> None:
    return None


@app.task(process=True)
def process(**_: object) -> None:
    return None


@app.task
async def one(item: int) -> None:
    return None


@app.task
async def counted(number: int, **_: object) -> None:
    recorder().record(number)


@app.task
async def nap(seconds: float) -> None:
    await asyncio.sleep(seconds)


@app.task
def spin(seconds: float) -> None:
    """Keeps a core busy until it has used this much CPU time of its own."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@functools.cache
def recorder() -> Recorder:
    return Recorder()
