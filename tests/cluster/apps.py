"""Tasks for tests that run real processes."""

import os
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
    """Without its guarantee it would take too much from the account whenever a worker dies after it."""
    await ctx.connection.execute("update account set balance = balance - $1 where id = $2", amount, ctx.run_id.int % 8)
