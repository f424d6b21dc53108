"""The share of the machine that other processes take, measured with real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

from tests.chaos.machine import TICK, Machine, read_processes
from tests.support.waiting import until

SPIN = "while True: pass"


async def test_other_processes_count_and_descendants_do_not() -> None:
    with ExitStack() as stack:
        one, other = (subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2))
        for child in (one, other):
            stack.callback(child.wait)
            stack.callback(child.kill)
        of_one = Machine(one.pid)
        ours = Machine(os.getpid())
        pids = {pid for pid, _ in ours._others}
        assert not pids & {one.pid, other.pid, os.getpid()}
        assert other.pid in {pid for pid, _ in of_one._others}

        async def has_worked() -> bool:
            return dict(read_processes())[other.pid].busy * TICK > 0.3

        await until(has_worked)
        taken = of_one.sample()
        assert taken.others > 0
        assert taken.until > taken.since
        assert 0 < taken.seconds <= (taken.until - taken.since) / 1e6


async def test_a_process_that_outlives_its_parent_is_still_ours() -> None:
    script = "sleep 60 >&2 & echo $!; read line"
    parent = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdin is not None
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    machine = Machine(parent.pid)
    try:
        parent.stdin.close()
        parent.wait(30)
        machine.sample()
        assert child in dict(read_processes())
        assert child not in {pid for pid, _ in machine._others}
    finally:
        parent.stdout.close()
        os.kill(child, 9)
