"""`python -m tests.chaos run | check DIRECTORY | measure`: make trouble, look at a history again, time the checker."""

# ruff: noqa: T201 (it is a command)
from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.checker.check import breaches, invariants
from tests.chaos.checker.history import History, load
from tests.chaos.figures import figures
from tests.chaos.good import good_history
from tests.chaos.run import Plan, any_seed, run


def report(history: History) -> int:
    """What is broken, in words; the exit code."""
    print(f"{len(history.changes)} changes of {len(history.runs)} runs, {len(history.journal)} requests, {len(history.ledger)} effects, "
          f"{len(history.faults)} faults")  # fmt: skip
    for figure in figures(history):
        print(f"  {figure}")
    found = breaches(history)
    for breach in found:
        print(f"\nBROKEN {breach.invariant}")
        for fault in breach.faults:
            print(f"  {fault}")
    print(f"\n{len(found)} of {len(invariants())} invariants are broken" if found else f"all {len(invariants())} invariants hold")
    return 1 if found else 0


def measure(events: int) -> int:
    """How long the checker takes for a history of about so many changes and effects."""
    began = time.monotonic()
    history = good_history(1, lives=events // 90)
    size = len(history.changes) + len(history.ledger)
    print(f"a history of {size} events, made in {time.monotonic() - began:.1f} s")
    began, cpu = time.monotonic(), time.process_time()
    found = breaches(history)
    print(f"checked in {time.monotonic() - began:.1f} s, {time.process_time() - cpu:.1f} s of CPU: {len(found)} invariants broken")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="start a cluster, make trouble, check what came of it")
    running.add_argument("--minutes", type=float, default=5)
    running.add_argument("--seed", type=int, default=0, help="0: any")
    running.add_argument("--rate", type=float, default=300, help="jobs a second")
    running.add_argument("--only", action="append", default=[], help="a fault; may be repeated. None: all of them")
    running.add_argument("--every", type=float, default=6.0, help="seconds between two faults, on average")
    running.add_argument("--at-once", type=int, default=1, help="faults side by side")
    running.add_argument("--schedulers", type=int, default=2)
    running.add_argument("--workers", type=int, default=3)
    running.add_argument("--directory", type=Path, help="for the history and the logs; by default one under the temporary directory")
    check = commands.add_parser("check", help="check a history that was saved")
    check.add_argument("directory", type=Path)
    timing = commands.add_parser("measure", help="time the checker")
    timing.add_argument("--events", type=int, default=1_000_000)
    asked = parser.parse_args()
    if asked.command == "check":
        return report(load(asked.directory))
    if asked.command == "measure":
        return measure(asked.events)
    return make_trouble(asked)


def make_trouble(asked: argparse.Namespace) -> int:
    """Kept when something is wrong, so that it can be looked at again; removed when all is well, unless a directory was named."""
    seed = asked.seed or any_seed()
    directory = asked.directory or Path(tempfile.mkdtemp(prefix=f"foliot-chaos-{seed}-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"SEED={seed}, history in {directory}", flush=True)
    plan = Plan(directory, seed, asked.minutes, asked.rate, asked.only, asked.every, asked.at_once, asked.schedulers, asked.workers)
    asyncio.run(run(plan, lambda text: print(text, flush=True)))
    shutil.rmtree(directory / "postgres", ignore_errors=True)
    status = report(load(directory))
    if status == 0 and asked.directory is None:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        print(f"again: python -m tests.chaos check {directory}; once more: make chaos SEED={seed}")
    return status


if __name__ == "__main__":
    sys.exit(main())
