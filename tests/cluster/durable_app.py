"""A durable function of ten steps that counts its effects outside the database."""

import asyncio
import os
from pathlib import Path

import foliot

app = foliot.App()
STEPS = 10
LEDGER = "DURABLE_LEDGER"


async def effect(number: int) -> int:
    with Path(os.environ[LEDGER]).open("a") as ledger:
        ledger.write(f"{number} {foliot.step_key()}\n")
    # Long enough for a test to kill the worker before the record.
    await asyncio.sleep(0.3)
    return number * number


@app.task(retries=0)
async def ten_steps(ctx: foliot.Context) -> list[int]:
    return [await ctx.step(f"step {number}", effect, number) for number in range(STEPS)]
