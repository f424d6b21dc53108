"""Jobs that record their effects outside the database: one line for each effect, before the next one starts."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from uuid import UUID

import asyncpg
import msgspec

import foliot
from tests.chaos.checker.history import Effect

LEDGER = "CHAOS_LEDGER"
"""The variable with the directory of the ledger. Not FOLIOT_: those are settings."""
RETRIES = 3
BETWEEN_EFFECTS = 0.2

app = foliot.App()


class Ledger:
    """A file for this process alone. One write for each line, which survives the death of the process."""

    def __init__(self) -> None:
        self._file: int | None = None

    def write(self, kind: str, ctx: foliot.Context) -> None:
        self.note(kind, str(ctx.run_id), ctx.token)

    def note(self, kind: str, run_id: str, token: int) -> None:
        if self._file is None:
            path = Path(os.environ[LEDGER]) / f"{os.getpid()}-{time.monotonic_ns()}.jsonl"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        effect = Effect(time.monotonic_ns() // 1000, kind, run_id, token, os.getpid())  # type: ignore[arg-type]
        os.write(self._file, msgspec.json.encode(effect) + b"\n")


ledger = Ledger()
backoff = foliot.Backoff(kind="fixed", base_seconds=0.3)


async def work(ctx: foliot.Context, seconds: float, fails: int, fails_for_good: bool) -> None:
    ledger.write("start", ctx)
    while seconds > BETWEEN_EFFECTS:
        await asyncio.sleep(BETWEEN_EFFECTS)
        seconds -= BETWEEN_EFFECTS
        ledger.write("work", ctx)
    await asyncio.sleep(seconds)
    if fails_for_good:
        raise foliot.Fail("as it was told")
    if random.random() < fails / (fails + 1):
        raise RuntimeError("as it was told")
    ledger.write("finish", ctx)


@app.task(retries=50, backoff=backoff)
async def effect(ctx: foliot.Context, seconds: float = 0, fails: int = 0, fails_for_good: bool = False) -> None:
    await work(ctx, seconds, fails, fails_for_good)


@app.task(retries=50, backoff=backoff)
async def nap(ctx: foliot.Context, seconds: float) -> None:
    """In one piece, so that it ends the moment its worker wakes from a longer sleep."""
    ledger.write("start", ctx)
    await asyncio.sleep(seconds)
    ledger.write("finish", ctx)


@app.task(guarantee="at_most_once", retries=0)
async def once(ctx: foliot.Context, seconds: float = 0) -> None:
    await work(ctx, seconds, 0, False)


@app.task(guarantee="at_most_once", retries=0)
async def quick(mark: str) -> None:
    """Ends without waiting and takes no context, as most short jobs do: the worker calls many of these in one asyncio
    task.

    It cannot know its run, so the ledger names it by its mark, and `recorder.py` finds the run by its payload.
    """
    ledger.note("start", mark, 0)
    ledger.note("finish", mark, 0)


@app.task(retries=50, backoff=backoff)
def blocking(ctx: foliot.Context, seconds: float = 0) -> None:
    """A plain function, in a thread."""
    ledger.write("start", ctx)
    time.sleep(seconds)
    ledger.write("finish", ctx)


@app.task(guarantee="transactional", retries=50, backoff=backoff)
async def pay(ctx: foliot.Context, seconds: float = 0) -> None:
    """Its effect is committed with its end, or not at all."""
    ledger.write("start", ctx)
    await ctx.connection.execute("insert into chaos.paid (run_id, token) values ($1, $2)", ctx.run_id, ctx.token)
    await asyncio.sleep(seconds)


async def step(fails: bool) -> None:
    await asyncio.sleep(0.02)
    if fails and random.random() < 0.2:
        raise RuntimeError("as it was told")


async def paid(connection: asyncpg.Connection, run_id: UUID, token: int) -> None:
    await connection.execute(
        "insert into chaos.records (kind, run_id, name, token, lost) values ('effect', $1, 'paid', $2, 0)",
        run_id,
        token,
    )


@app.task(retries=50, backoff=backoff)
async def durable(ctx: foliot.Context) -> None:
    """Its steps are those of `checker/durable.py`."""
    ledger.write("start", ctx)
    await ctx.step("first", step, True)
    await ctx.transaction("paid", paid, ctx.run_id, ctx.token)
    await ctx.sleep(1.2, name="nap")
    await ctx.call("called", "effect", seconds=0.01)
    await asyncio.gather(ctx.step("left", step, True), ctx.step("right", step, False))
    ledger.write("finish", ctx)


@app.task(retries=0, timeout=1)
async def endless(ctx: foliot.Context) -> None:
    """Always exceeds its time limit."""
    await work(ctx, 3600, 0, False)
