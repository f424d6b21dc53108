"""Tasks for tests that run real processes."""

import asyncio
import os
import random
import time

import foliot

app = foliot.App()


@app.task
async def noop() -> None:
    return None


@app.task
def whoami() -> int:
    return os.getpid()


@app.task(queue="mail", retries=0)
def greet(name: str) -> str:
    return f"hello {name}"


@app.task
def linger(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@app.task(guarantee="transactional", retries=1000, backoff=foliot.Backoff(kind="fixed", base_seconds=0.1))
async def debit(amount: int, ctx: foliot.Context) -> None:
    """Without its guarantee, it would debit the account twice whenever a worker dies after it."""
    await ctx.connection.execute("update account set balance = balance - $1 where id = $2", amount, ctx.run_id.int % 8)


@app.task(retries=3, backoff=foliot.Backoff(kind="fixed", base_seconds=0.05))
async def step(
    ctx: foliot.Context, fails: bool = False, retries: int = 0, item: int = -1, failing_items: tuple[int, ...] = ()
) -> str:
    """A step of a random workflow, which behaves as it was drawn."""
    await asyncio.sleep(random.uniform(0, 0.1))
    if fails or item in failing_items:
        raise foliot.Fail("as it was told")
    if ctx.attempt <= retries:
        raise foliot.RetryIn(0.01)
    return "done"
