"""What every long-running command does alike: the fast event loop, signals, and going along when the process that started it dies."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import click

from foliot.assembly import Stop
from foliot.config import forget_secrets
from foliot.service import loop_factory

LAST_WORDS_SECONDS = 2.0

supervised_option = click.option(
    "--supervised", is_flag=True, hidden=True, help="Stop when standard input ends: the process that started this one is gone."
)


def run(work: Callable[[Stop], Awaitable[Any]], *, is_supervised: bool = False) -> None:
    """Runs until done or asked to stop. The first SIGTERM or SIGINT drains, the second hurries."""
    forget_secrets()

    async def main() -> None:
        stop, loop = Stop.new(), asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.ask)
        if is_supervised:
            loop.add_reader(sys.stdin.fileno(), _supervisor_gone, stop)
        await work(stop)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main())


def _supervisor_gone(stop: Stop) -> None:
    if os.read(sys.stdin.fileno(), 1) == b"":
        loop = asyncio.get_running_loop()
        loop.remove_reader(sys.stdin.fileno())
        stop.asked.set()
        stop.hurried.set()
        # The embedded PostgreSQL goes with the supervisor: waiting for it to take last words would be waiting for nothing.
        loop.call_later(LAST_WORDS_SECONDS, os._exit, 1)
