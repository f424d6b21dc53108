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
