# ruff: noqa: T201
"""Tasks of every kind that print and log."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading

import foliot

app = foliot.App()
go = threading.Event()
quiet = logging.getLogger("shop.quiet")
quiet.propagate = False


def say(word: str, ctx: foliot.Context | None) -> None:
    print("printed", word)
    logging.info("root says %s", word)
    logging.getLogger("shop.mail").warning("mail says %s", word)
    print("on standard error", word, file=sys.stderr)
    quiet.info("does not propagate %s", word)
    if ctx is not None:
        ctx.logger.info("by the context %s", word)
    else:
        logging.info("by the context %s", word)
    sys.stdout.flush()
    sys.stdout.buffer.write(f"bytes {word}\n".encode())
    sys.stdout.buffer.flush()


@app.task
async def on_the_loop(word: str) -> None:
    say(word, None)


@app.task
async def waiting_on_the_loop(word: str, ctx: foliot.Context) -> None:
    await asyncio.sleep(0)
    say(word, ctx)


@app.task
def in_a_thread(word: str, ctx: foliot.Context) -> None:
    say(word, ctx)


@app.task(process=True)
def in_a_process(word: str, ctx: foliot.Context) -> None:
    say(word, ctx)


@app.task
async def many_on_the_loop(word: str) -> None:
    for line in range(50):
        print(word, line)


@app.task
async def many_waiting_on_the_loop(word: str) -> None:
    for line in range(50):
        print(word, line)
        await asyncio.sleep(0)


@app.task
def many_in_a_thread(word: str) -> None:
    for line in range(50):
        print(word, line)
        os.sched_yield()


@app.task(process=True)
def many_in_a_process(word: str) -> None:
    for line in range(50):
        print(word, line)


def speak_later() -> None:
    go.wait(60)
    print("late")
    logging.warning("late")
    go.clear()


@app.task(process=True)
def leaves_a_thread() -> int:
    threading.Thread(target=speak_later, daemon=True).start()
    print("first")
    return os.getpid()


@app.task(process=True)
def after_the_thread() -> int:
    go.set()
    while go.is_set():
        os.sched_yield()
    print("second")
    return os.getpid()
