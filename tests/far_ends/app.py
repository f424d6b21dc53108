"""Tasks that give every far end something to take."""

from __future__ import annotations

import sys

from opentelemetry import trace

import foliot

app = foliot.App()


@app.task
async def chat(number: int = 0) -> None:
    sys.stdout.write(f"line of {number}\n")
    with trace.get_tracer("tests").start_as_current_span("chatting"):
        pass


@app.task(retries=0)
def fail_before() -> None:
    raise ValueError("before the fault")


@app.task(retries=0)
def fail_during() -> None:
    raise ValueError("during the fault")
