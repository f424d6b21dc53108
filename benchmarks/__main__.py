"""`make bench`: each scenario prints one JSON line and a table. By default everything takes minutes; `--full` may take
hours."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop

from benchmarks import document, environment, report
from benchmarks.bench import Bench, opened
from benchmarks.cpu import Others
from benchmarks.scenarios import many_workers
from benchmarks.scenarios.order import ALL, WITH_RIVALS, Scenario

USUAL_SECONDS, FULL_SECONDS = 300.0, 3600.0
"""The most that one scenario may take; rivals have to be installed, and some are slow, so they have the longer."""
LATEST = Path(__file__).parent / "results" / "latest.json"


async def run(bench: Bench, chosen: Sequence[Scenario], *, again: int) -> list[dict[str, Any]]:
    surroundings = await environment.describe(bench)
    print(json.dumps(surroundings), end="\n\n", flush=True)
    found = [surroundings]
    for scenario in chosen:
        tries = [await tried(bench, scenario, surroundings)]
        while len(tries) <= again and report.missed(tries[-1]):
            tries.append(await tried(bench, scenario, surroundings))
        found.append(report.best(tries))
    return found


async def tried(bench: Bench, scenario: Scenario, surroundings: dict[str, Any]) -> dict[str, Any]:
    await bench.empty()
    await bench.settle()
    began, others = perf_counter(), Others(bench.postmaster)
    try:
        async with asyncio.timeout(FULL_SECONDS if bench.is_full or scenario not in ALL else USUAL_SECONDS):
            result = await scenario.measure(bench)
    except Exception as error:
        # The other scenarios may still succeed, so an hour of results is not lost.
        failed = {"scenario": scenario.NAME, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(failed), end="\n\n", flush=True)
        return failed
    took: dict[str, object] = {"measured_at": surroundings["measured_at"], "size": surroundings["size"]}
    took |= {"seconds": round(perf_counter() - began, 1), "cores_of_others": round(others.cores(), 2)}
    found = report.document(scenario.NAME, scenario.TITLE, result, **took)
    print(json.dumps(found), report.table(found), sep="\n\n", flush=True)
    return found


async def main(options: argparse.Namespace, chosen: Sequence[Scenario]) -> None:
    async with opened(options.url, is_full=options.full, is_tiny=options.tiny) as bench:
        found = await run(bench, chosen, again=options.again)
    missed = [what for one in found for what in report.missed(one)]
    print(f"{sum(len(one.get('goals', ())) for one in found)} goals, not met: {', '.join(missed) or 'none'}")
    if not options.tiny:
        keep(found, options.json)
    if failed := [one["scenario"] for one in found if "error" in one]:
        sys.exit(f"not measured: {', '.join(failed)}")


def keep(found: list[dict[str, Any]], path: Path) -> None:
    """Merges new results into the old ones, so that a single scenario can be measured again."""
    before = json.loads(path.read_text()) if path.exists() else []
    results = {one["scenario"]: one for one in (*before, *found)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(results.values()), indent=1) + "\n")


def choose(names: str | None, *, has_rivals: bool) -> list[Scenario]:
    known = {scenario.NAME: scenario for scenario in (*ALL, *WITH_RIVALS, many_workers)}
    if names is None:
        return [*ALL, *(WITH_RIVALS if has_rivals else ())]
    wanted = names.split(",")
    if unknown := [name for name in wanted if name not in known]:
        sys.exit(f"there is no scenario {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in wanted]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="NAME[,NAME]", help="these scenarios only")
    parser.add_argument("--list", action="store_true", help="name the scenarios and stop")
    parser.add_argument("--full", action="store_true", help="everything, in full size: hours on a slow machine")
    parser.add_argument("--tiny", action="store_true", help="the smallest size: only checks that every scenario runs")
    parser.add_argument(
        "--again",
        type=int,
        default=0,
        metavar="N",
        help="measure scenarios that miss a goal up to N times more, and report all tries",
    )
    parser.add_argument(
        "--rivals",
        action="store_true",
        help="also run `rivals`, `rivals_waits` and `brokers`, which install other schedulers below .rivals/",
    )
    parser.add_argument(
        "--capacity",
        action="store_true",
        help="only `many_workers`: with --full, 10,000 workers, 1,000,000 schedules and up to 10,000 jobs a second",
    )
    parser.add_argument("--url", help="a PostgreSQL to use instead of an embedded one; its schema foliot is emptied")
    parser.add_argument(
        "--json",
        type=Path,
        default=LATEST,
        metavar="FILE",
        help="the file for results; replaces earlier results of the same scenarios",
    )
    parser.add_argument(
        "--document", action="store_true", help="measure nothing: write the results of FILE into docs/performance.md"
    )
    options = parser.parse_args()
    chosen = choose(many_workers.NAME if options.capacity else options.only, has_rivals=options.rivals)
    if options.list:
        print(*(f"{scenario.NAME:<14}{scenario.TITLE}" for scenario in chosen), sep="\n")
    elif options.document:
        document.write(options.json)
    else:
        uvloop.run(main(options, chosen))
