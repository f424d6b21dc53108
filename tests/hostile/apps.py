"""Tasks that try to harm their worker, and innocent ones next to them. For real worker processes."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

import foliot

app = foliot.App()
QUICK: dict[str, Any] = {"timeout": 2.0, "retries": 0}
background: list[asyncio.Task[Any]] = []


@app.task(retries=5, backoff=foliot.Backoff(kind="fixed", base_seconds=0.1))
async def innocent(ctx: foliot.Context) -> int:
    """Records that it ran; each must run exactly once."""
    ctx.logger.info("here")
    await asyncio.sleep(0.2)
    return ctx.attempt


@app.task(retries=5, backoff=foliot.Backoff(kind="fixed", base_seconds=0.1))
def innocent_thread(ctx: foliot.Context) -> int:
    time.sleep(0.2)
    return ctx.attempt


class Mute(Exception):
    def __str__(self) -> str:
        while True:
            time.sleep(1)


class Loud(Exception):
    def __str__(self) -> str:
        return "://" * 17_000_000


class Liar(BaseException):
    def __getattribute__(self, name: str) -> NoReturn:
        raise RuntimeError(name)

    __str__ = __repr__ = __reduce__ = __eq__ = __hash__ = __getattribute__  # type: ignore[assignment]


# --- exceptions


@app.task(**QUICK)
async def mute() -> None:
    raise Mute


@app.task(**QUICK)
def mute_thread() -> None:
    raise Mute


@app.task(process=True, **QUICK)
def mute_process() -> None:
    raise Mute


@app.task(guarantee="transactional", **QUICK)
async def mute_transaction(ctx: foliot.Context) -> None:
    raise Mute


@app.task(**QUICK)
async def loud() -> None:
    raise Loud


@app.task(**QUICK)
def loud_thread() -> None:
    raise Loud


@app.task(process=True, **QUICK)
def loud_process() -> None:
    raise Loud


@app.task(**QUICK)
async def liar() -> None:
    raise Liar


@app.task(**QUICK)
def liar_thread() -> None:
    raise Liar


@app.task(process=True, **QUICK)
def liar_process() -> None:
    raise Liar


@app.task(guarantee="transactional", **QUICK)
async def liar_transaction(ctx: foliot.Context) -> None:
    raise Liar


@app.task(**QUICK)
async def leave() -> None:
    sys.exit(3)


@app.task(**QUICK)
async def leave_in_the_background() -> None:
    async def leave() -> None:
        sys.exit(3)

    background.append(asyncio.create_task(leave()))
    await asyncio.sleep(0.1)


@app.task(**QUICK)
async def leave_in_a_callback() -> None:
    asyncio.get_running_loop().call_soon(sys.exit)
    asyncio.get_running_loop().call_later(0.3, sys.exit)


@app.task(**QUICK)
async def leave_in_a_group() -> None:
    async def interrupt() -> None:
        raise KeyboardInterrupt

    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(1))
        group.create_task(interrupt())


@app.task(**QUICK)
async def interrupt() -> None:
    raise KeyboardInterrupt


@app.task(**QUICK)
async def end_generator() -> None:
    raise GeneratorExit


@app.task(**QUICK)
async def cancel_itself() -> None:
    raise asyncio.CancelledError


@app.task(**QUICK)
def recurse() -> None:
    recurse()


@app.task(**QUICK)
def remember_too_much() -> bytes:
    return bytes(1 << 62)


# --- tasks that never end


@app.task(**QUICK)
async def swallow() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except BaseException:
            continue


@app.task(**QUICK)
async def swallow_in_context(ctx: foliot.Context) -> None:
    await swallow.function()


@app.task(guarantee="transactional", **QUICK)
async def swallow_transaction(ctx: foliot.Context) -> None:
    await swallow.function()


@app.task(process=True, **QUICK)
def swallow_process() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            time.sleep(60)
        except BaseException:
            continue


@app.task(**QUICK)
def sleep_in_a_thread() -> None:
    time.sleep(3600)


@app.task(**QUICK)
async def sleep_in_the_pool() -> None:
    await asyncio.to_thread(time.sleep, 3600)


# --- results


@dataclass(init=False)
class Hostile:
    field: int

    def __iter__(self) -> Iterator[int]:
        raise RuntimeError("no")

    def __getattribute__(self, name: str) -> NoReturn:
        raise RuntimeError(name)

    def keys(self) -> NoReturn:
        raise RuntimeError("no")


def circle() -> list[Any]:
    found: list[Any] = []
    found.append({"again": found})
    return found


RESULTS: dict[str, Any] = {
    "nan": lambda: {"a": [float("nan")]},
    "infinity": lambda: float("inf"),
    "circle": circle,
    "hostile": Hostile,
    "odd keys": lambda: {(1, 2): 3, None: 4},
    "huge": lambda: "x" * 100_000_000,
    "deep": lambda: __import__("functools").reduce(lambda inner, _: [inner], range(100_000), 0),
    "generator": lambda: (number for number in range(3)),
    "surrogate": lambda: {"\ud800": {1, "x"}, "b": object()},
}


@app.task(**QUICK)
async def give(what: str) -> Any:
    return RESULTS[what]()


@app.task(**QUICK)
def give_thread(what: str) -> Any:
    return RESULTS[what]()


@app.task(process=True, **QUICK)
def give_process(what: str) -> Any:
    return RESULTS[what]()


@app.task(guarantee="transactional", **QUICK)
async def give_transaction(what: str, ctx: foliot.Context) -> Any:
    return RESULTS[what]()


@app.task(**QUICK)
async def generate() -> AsyncIterator[int]:
    yield 1


# --- attacks on the worker


@app.task(**QUICK)
async def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()


@app.task(**QUICK)
async def close_the_loop() -> None:
    asyncio.get_running_loop().close()


@app.task(**QUICK)
async def run_a_loop() -> None:
    asyncio.run(asyncio.sleep(0))


@app.task(**QUICK)
async def cancel_everything() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


@app.task(**QUICK)
async def take_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print)


@app.task(**QUICK)
async def replace_functions() -> None:
    def fail(*arguments: object, **named: object) -> NoReturn:
        raise RuntimeError("replaced")

    random.random = random.uniform = json.dumps = json.loads = fail
    msgspec.json.encode = msgspec.json.decode = fail
    asyncio.get_running_loop().set_task_factory(fail)


@app.task(**QUICK)
def lower_the_limit() -> None:
    sys.setrecursionlimit(30)


@app.task(**QUICK)
def warn_loudly() -> None:
    warnings.simplefilter("error")
    gc.collect()
    threading.excepthook = None  # type: ignore[assignment]


@app.task(**QUICK)
def set_the_context(ctx: foliot.Context) -> None:
    ctx.left_running = ctx.progress_made = ctx.upstream = ctx.connection = object()  # type: ignore[assignment]


@app.task(process=True, **QUICK)
def close_everything() -> None:
    os.closerange(0, 65_536)


@app.task(process=True, **QUICK)
def print_a_lot() -> None:
    for _ in range(300):
        sys.stdout.write("x" * 1_000_000)


@app.task(process=True, **QUICK)
def answer_garbage() -> None:
    for descriptor in range(3, 1000):
        try:
            os.write(descriptor, b"x" * 10_000_000)
        except OSError:
            continue


@app.task(process=True, **QUICK)
def vanish() -> None:
    os._exit(0)


@app.task(timeout=60, retries=0)
async def block(seconds: float) -> None:
    time.sleep(seconds)


@app.task(timeout=60, retries=0)
def vanish_with_the_worker(ctx: foliot.Context) -> None:
    ctx.logger.info("about to go")
    time.sleep(3)
    os._exit(1)
