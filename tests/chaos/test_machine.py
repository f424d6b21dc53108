"""The share of the machine that other processes take, measured with real ones."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

from tests.chaos.machine import TICK, Machine, read_processes, stolen_by_core
from tests.support.waiting import until

SPIN = "while True: pass"


async def test_other_processes_count_and_descendants_do_not() -> None:
    with ExitStack() as stack:
        one, other = (subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(2))
        for child in (one, other):
            stack.callback(child.wait)
            stack.callback(child.kill)
        of_one, ours = Machine(one.pid), Machine(os.getpid())
        assert {one.pid, other.pid, os.getpid()} <= {pid for pid, _ in ours.ours}
        assert {pid for pid, _ in of_one.ours} == {one.pid}
        before = dict(read_processes())[other.pid].busy

        async def has_worked() -> bool:
            return (dict(read_processes())[other.pid].busy - before) * TICK > 0.3

        await until(has_worked)
        taken = of_one.sample()
        assert taken.others * len(stolen_by_core()) * (taken.until - taken.since) / 1e6 > 0.25
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
        assert child in {pid for pid, _ in machine.ours}
    finally:
        parent.stdout.close()
        os.kill(child, 9)
