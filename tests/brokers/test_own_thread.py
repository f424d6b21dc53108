"""Calls that block hold up neither the event loop nor the end of the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from foliot.brokers.own_thread import OwnThread
from tests.support.waiting import PATIENCE_SECONDS

HANGS = """
import asyncio, time
from foliot.brokers.own_thread import OwnThread

async def main():
    try:
        await asyncio.wait_for(OwnThread("test").call(lambda: time.sleep(3600)), 0.05)
    except TimeoutError:
        print("went on")

asyncio.run(main())
"""


async def test_a_call_waits_for_one_that_was_cancelled_and_errors_come_back() -> None:
    thread, begun, may_go_on, order = OwnThread("test"), threading.Event(), threading.Event(), list[int]()

    def wait() -> None:
        begun.set()
        may_go_on.wait(PATIENCE_SECONDS)
        order.append(1)

    first = asyncio.create_task(thread.call(wait))
    second = asyncio.create_task(thread.call(lambda: order.append(2)))
    await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    first.cancel()
    may_go_on.set()
    await second
    assert order == [1, 2]
    with pytest.raises(ZeroDivisionError):
        await thread.call(lambda: 1 // 0)
    thread.end()


def test_a_call_that_hangs_does_not_hold_up_the_end_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HANGS], capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "went on\n", "")
