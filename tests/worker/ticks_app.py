"""Tasks that return their tick."""

from __future__ import annotations

from typing import Any

import foliot

app = foliot.App()


def seen(ctx: foliot.Context) -> list[Any]:
    times = [at and at.isoformat() for at in (ctx.scheduled_for, ctx.previous_tick, ctx.next_tick)]
    tick = ctx.tick
    job = [None, None, None] if tick is None else [tick.timezone, tick.job, str(tick.job_id)]
    return [*times, *job, ctx.is_backfill]


@app.task
async def seen_on_the_loop(ctx: foliot.Context) -> list[Any]:
    return seen(ctx)


@app.task
def seen_in_a_thread(ctx: foliot.Context) -> list[Any]:
    return seen(ctx)


@app.task(process=True)
def seen_in_a_process(ctx: foliot.Context) -> list[Any]:
    return seen(ctx)


@app.task
async def seen_with_item(item: int, ctx: foliot.Context) -> list[Any]:
    return seen(ctx)


@app.task(retries=1, backoff=foliot.Backoff(kind="fixed", base_seconds=0.05))
async def fails_at_first(ctx: foliot.Context) -> list[Any]:
    if ctx.attempt == 1:
        raise ValueError("the first attempt")
    return [ctx.attempt, ctx.scheduled_for and ctx.scheduled_for.isoformat()]
