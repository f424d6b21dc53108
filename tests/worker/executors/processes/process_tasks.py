"""Functions that tests run in their own processes. They are in a module, because a process imports them."""

# ruff: noqa: T201

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Any

import foliot

app = foliot.App()


@app.task(process=True)
def describe(a: int, b: int = 2, *, ctx: foliot.Context) -> dict[str, Any]:
    print("printed", a)
    print("complained", file=sys.stderr)
    ctx.write(b"written\n")
    os.system("echo from a child")
    ctx.progress(0.5, "half")
    return {"sum": a + b, "pid": os.getpid(), "run": str(ctx.run_id), "attempt": ctx.attempt, "task": ctx.task}


@app.task(process=True)
async def later(n: int) -> int:
    await asyncio.sleep(0.01)
    return n + 1


@app.task(process=True, retries=0)
def fail(kind: str) -> None:
    raise {"value": ValueError, "exit": SystemExit, "interrupt": KeyboardInterrupt}[kind]("on purpose")


@app.task(process=True)
def unserialisable() -> object:
    return object()


@app.task(process=True)
def echo(text: str) -> str:
    return text


@app.task(process=True)
def chatter(size: int) -> None:
    print("x" * size, end="")


@app.task(process=True)
def die(how: str) -> None:
    print("last words")
    if how == "exit":
        os._exit(3)
    elif how == "segfault":
        ctypes.string_at(0)
    else:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task(process=True, retries=0, timeout=0.5)
def spin(mark: str) -> None:
    subprocess.Popen(["setsid", "sleep", mark])
    print("spinning", flush=True)
    while True:
        pass


@app.task(process=True)
def patient(ctx: foliot.Context) -> str:
    print("waiting", flush=True)
    while not ctx.should_stop():
        time.sleep(0.01)
    print("asked to stop")
    return "stopped by request"


@app.task(process=True)
def stubborn(mark: str, ctx: foliot.Context) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", mark])
    print("waiting", flush=True)
    while True:
        time.sleep(0.01)


@app.task(process=True)
def environment() -> dict[str, str]:
    return dict(os.environ)


@app.task(process=True)
def put_off() -> None:
    raise foliot.RetryIn(30, "not yet")


@app.task(process=True)
def write_everywhere(times: int, end: str) -> None:
    """Writes into every descriptor, so also into the pipe of answers."""
    for descriptor in range(3, 1000):
        try:
            for _ in range(times):
                os.write(descriptor, b"x" * 1_000_000 + end.encode())
        except OSError:
            continue
