"""Runs chaos, kills many processes, checks a saved history, or times the checker: `python -m tests.chaos`."""

# ruff: noqa: T201 (it is a command)
from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos import deaths
from tests.chaos.checker.check import breaches, invariants
from tests.chaos.checker.history import SECOND, History, load
from tests.chaos.checker.recovery import WINDOW, Throughput
from tests.chaos.cluster import APP, UNFENCED_APP, Surroundings
from tests.chaos.figures import figures, taken
from tests.chaos.good import good_history
from tests.chaos.run import Plan, any_seed, run
from tests.chaos.services import BROKERS, COORDINATORS

FENCE = 17
"""The invariant that fails when a worker keeps running without a lease."""


def report(history: History) -> int:
    """Prints the broken invariants, and returns the exit code."""
    print(
        f"{len(history.changes)} changes of {len(history.runs)} runs, {len(history.journal)} requests, "
        f"{len(history.ledger)} effects, {len(history.faults)} faults"
    )
    throughput = Throughput(history)
    usual = throughput.usual * SECOND / WINDOW
    print(f"  runs that ended in a second: {throughput.average:.1f} on average, outages included; {usual:.1f} usually")
    for figure in (taken(history), *figures(history)):
        print(f"  {figure}")
    found = breaches(history)
    for breach in found:
        print(f"\nBROKEN {breach.invariant}")
        for fault in breach.faults:
            print(f"  {fault}")
    print(
        f"\n{len(found)} of {len(invariants())} invariants are broken"
        if found
        else f"all {len(invariants())} invariants hold"
    )
    return 1 if found else 0


def measure(events: int) -> int:
    """Measures the checker on a history of about this number of changes and effects."""
    began = time.monotonic()
    history = good_history(1, lives=events // 90)
    size = len(history.changes) + len(history.ledger)
    print(f"a history of {size} events, made in {time.monotonic() - began:.1f} s")
    began, cpu = time.monotonic(), time.process_time()
    found = breaches(history)
    print(
        f"checked in {time.monotonic() - began:.1f} s, {time.process_time() - cpu:.1f} s of CPU: {len(found)} "
        f"invariants broken"
    )
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
    running.add_argument("--dispatch", choices=["postgres", *BROKERS], default="postgres", help="with a message broker")
    running.add_argument(
        "--coordination", choices=["postgres", *COORDINATORS], default="postgres", help="with etcd or ZooKeeper"
    )
    running.add_argument(
        "--remote-workers", type=int, default=0, help="workers that reach only the API servers, beside the others"
    )
    running.add_argument("--standby", action="store_true", help="with a synchronous standby, which gets promoted")
    running.add_argument(
        "--unfenced", action="store_true", help="workers that trust their leases for ever: I17 has to notice"
    )
    running.add_argument(
        "--directory", type=Path, help="for the history and the logs; by default one under the temporary directory"
    )
    dying = commands.add_parser(
        "deaths", help="kill many workers and scheduler nodes, and measure how soon each death is made good"
    )
    dying.add_argument("--workers", type=int, default=1000, help="deaths of workers")
    dying.add_argument("--schedulers", type=int, default=200, help="deaths of scheduler nodes")
    dying.add_argument("--places", type=int, default=24, help="workers alive at once")
    dying.add_argument("--clusters", type=int, default=8, help="small clusters of scheduler nodes side by side")
    dying.add_argument("--every", type=float, default=1.0, help="seconds between two deaths of workers, on average")
    dying.add_argument("--seed", type=int, default=0, help="0: any")
    dying.add_argument(
        "--directory", type=Path, help="for the histories and the logs; by default one under the temporary directory"
    )
    dying.add_argument("--into", type=Path, help="a document with markers, between which the figures are put")
    check = commands.add_parser("check", help="check a history that was saved")
    check.add_argument("directory", type=Path)
    timing = commands.add_parser("measure", help="time the checker")
    timing.add_argument("--events", type=int, default=1_000_000)
    asked = parser.parse_args()
    if asked.command == "check":
        return report(load(asked.directory))
    if asked.command == "measure":
        return measure(asked.events)
    return kill_them(asked) if asked.command == "deaths" else make_trouble(asked)


def kill_them(asked: argparse.Namespace) -> int:
    seed, directory = prepare(asked)
    plan = deaths.Plan(directory, seed, asked.workers, asked.schedulers, asked.places, asked.clusters, asked.every)
    histories = asyncio.run(deaths.kill_many(plan, say_when()))
    status = max([report(history) for history in histories], default=0)
    text = deaths.page(histories)
    print(f"\n{text}")
    if asked.into is not None:
        deaths.write_into(asked.into, text)
    clear_up(asked, directory, status)
    return status


def say_when() -> Callable[[str], None]:
    """Prints lines with the seconds since the start."""
    began = time.monotonic()
    return lambda text: print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)


def prepare(asked: argparse.Namespace) -> tuple[int, Path]:
    """Prints the seed first, and creates the directory."""
    seed = asked.seed or any_seed()
    directory = asked.directory or Path(tempfile.mkdtemp(prefix=f"foliot-chaos-{seed}-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"SEED={seed}, history in {directory}", flush=True)
    return seed, directory


def clear_up(asked: argparse.Namespace, directory: Path, status: int) -> None:
    """Kept after a failure, for another look. Removed otherwise, unless the user named the directory."""
    for data in directory.rglob("postgres"):
        shutil.rmtree(data, ignore_errors=True)
    if status == 0 and asked.directory is None:
        shutil.rmtree(directory, ignore_errors=True)


def make_trouble(asked: argparse.Namespace) -> int:
    seed, directory = prepare(asked)
    plan = Plan(
        directory,
        seed,
        asked.minutes,
        asked.rate,
        asked.only,
        asked.every,
        asked.at_once,
        asked.schedulers,
        asked.workers,
        UNFENCED_APP if asked.unfenced else APP,
        Surroundings(asked.dispatch, asked.coordination, asked.standby, asked.remote_workers),
    )
    asyncio.run(run(plan, say_when()))
    history = load(directory)
    status = report(history)
    if asked.unfenced:
        status = 0 if any(breach.invariant.number == FENCE for breach in breaches(history)) else 1
        print("noticed, as it must be" if status == 0 else f"I{FENCE} did not notice that the workers' fence was gone")
    clear_up(asked, directory, status)
    if directory.exists():
        print(f"again: python -m tests.chaos check {directory}; once more: make chaos SEED={seed}")
    return status


if __name__ == "__main__":
    sys.exit(main())
