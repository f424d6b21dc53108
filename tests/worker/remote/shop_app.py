"""The app of the remote workers in these tests."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import foliot

app = foliot.App()


@app.task
async def add(a: int, b: int) -> int:
    return a + b


@app.task
def print_lines(number: int) -> str:
    for line in range(number):
        print(f"line {line}")  # noqa: T201
    return "printed"


@app.task(retries=3, backoff=foliot.Backoff(kind="fixed", base_seconds=0.01))
async def flaky(directory: str) -> int:
    """Fails twice."""
    tries = Path(directory) / "tries"
    with tries.open("a") as file:
        file.write("x")
    number = len(tries.read_text())
    if number < 3:
        raise RuntimeError(f"try {number}")
    return number


@app.task(retries=2)
async def hold(ctx: foliot.Context, directory: str) -> str:
    """Runs until it is stopped, or until a file says that it may return."""
    (Path(directory) / f"began-{ctx.attempt}-{os.getpid()}").touch()
    ctx.progress(0.5, "holding")
    while not (Path(directory) / "go").exists():
        await asyncio.sleep(0.02)
    return f"attempt {ctx.attempt}"


@app.task
async def total(ctx: foliot.Context) -> Any:
    return sum(ctx.upstream.values())


@app.task
async def order(ctx: foliot.Context, directory: str) -> list[Any]:
    """A durable function: its first step runs once, however often it is suspended."""

    def charge() -> int:
        with (Path(directory) / "charged").open("a") as file:
            file.write("x")
        return 7

    charged = await ctx.step("charge", charge)
    await ctx.sleep("1s")
    called = await ctx.call("add", a=charged, b=1)
    approved = await ctx.wait_signal("approve")
    return [charged, called, approved]
