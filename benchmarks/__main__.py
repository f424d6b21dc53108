"""`make bench`: one JSON line a scenario, then a table."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import uvloop

from benchmarks import drain, over_http, raw_sql, recurring, workflows
from foliot.clock import SystemClock
from foliot.config import Config
from foliot.embedded import EmbeddedPostgres
from foliot.events import EventBus
from foliot.store.store import open_store


async def main(options: argparse.Namespace) -> None:
    if options.url is not None:
        await run(options.url, options)
        return
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as directory:
        server = EmbeddedPostgres(Path(directory), clock=SystemClock(), settings={"track_commit_timestamp": "on"})
        try:
            await run(await server.start(), options)
        finally:
            await server.stop()


async def run(url: str, options: argparse.Namespace) -> None:
    async with open_store(url, config=Config(), clock=SystemClock(), events=EventBus(), part="bench") as store:
        await store.migrate()
    if options.only in ("all", "drain"):
        await drain_beside_raw_sql(url, options.jobs, options.slots)
    if options.only in ("all", "time"):
        await recurring_jobs(url, options.stored)
    if options.only in ("all", "steps"):
        await steps_beside_jobs(url, min(options.jobs, 10_000), options.slots)
    if options.only in ("all", "map"):
        await map_over(url, options.items, options.slots)
    if options.only in ("all", "http"):
        await single_jobs_over_http(url, options.rate)


async def single_jobs_over_http(url: str, rate: int) -> None:
    found = await over_http.measure(url, rate=rate, seconds=15)
    paced, closed, raw = (_rounded(found[name]) for name in ("paced", "closed", "raw_sql"))
    ratio = closed["per_second"] / raw["per_second"]
    say("http", rate=rate, paced=paced, closed=closed, raw_sql=raw, ratio=round(ratio, 2))
    print("single jobs by POST /v1/jobs, fsync on; latency counts from when a request was due\n")
    print(f"{'':<36}{'a second':>10}{'p50 ms':>9}{'p95 ms':>9}{'p99 ms':>9}{'max ms':>9}")
    rows = ((f"{rate:,} a second, whatever is answered", paced["sent_per_second"], paced), ("64 connections", closed["per_second"], closed))
    for name, per_second, one in (*rows, ("64 connections, raw SQL", raw["per_second"], raw)):
        print(f"{name:<36}{per_second:>10,.0f}" + "".join(f"{one[share]:>9.1f}" for share in ("p50_ms", "p95_ms", "p99_ms", "max_ms")))
    print(f"\nratio to raw SQL {ratio:.2f}; server CPU {paced['server_cpu_us']:.0f} us a job\n")


async def steps_beside_jobs(url: str, jobs: int, slots: int) -> None:
    found = await workflows.drain_steps(url, jobs=jobs, slots=slots)
    say("steps", jobs=jobs, slots=slots, **_rounded(found))
    print(f"a workflow of {jobs:,} steps, two arrows each, beside as many plain jobs: a step costs {found['ratio']:.2f} times a job\n")


async def map_over(url: str, items: int, slots: int) -> None:
    found = await workflows.map_items(url, items=items, slots=slots)
    say("map", slots=slots, **_rounded(found))
    print(f"a map over {items:,} items, each done once: " + ", ".join(f"{n.replace('_', ' ')} {v:,.2f}" for n, v in found.items()) + "\n")


async def drain_beside_raw_sql(url: str, jobs: int, slots: int) -> None:
    # The yardstick before and after, since the machine may change its pace between the two.
    before = await raw_sql.measure(url, jobs=jobs, payload=drain.PAYLOAD)
    foliot = await drain.measure(url, jobs=jobs, slots=slots)
    after = await raw_sql.measure(url, jobs=jobs, payload=drain.PAYLOAD)
    raw = {name: (before[name] + after[name]) / 2 for name in before}
    ratios = {name: foliot[name] / raw[name] for name in ("insert_per_second", "drain_per_second")}
    say("drain", jobs=jobs, slots=slots, foliot=_rounded(foliot), raw_sql=_rounded(raw), ratio=_rounded(ratios))
    print(f"{jobs} no-op jobs, one worker process, fsync on\n")
    print(f"{'':<24}{'Foliot':>12}{'raw SQL':>12}{'ratio':>8}")
    for name, ratio in ratios.items():
        print(f"{name.replace('_', ' '):<24}{foliot[name]:>12,.0f}{raw[name]:>12,.0f}{ratio:>8.2f}")
    print(f"{'client CPU us a job':<24}{foliot['worker_cpu_us']:>12.1f}{raw['client_cpu_us']:>12.1f}\n")


async def recurring_jobs(url: str, stored: int) -> None:
    lag = await recurring.every_second(url, jobs=1000, seconds=20)
    say("every_second", jobs=1000, seconds=20, **_rounded(lag))
    print("1,000 jobs every second on one scheduler node\n")
    print("  ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in lag.items()), end="\n\n")
    took = await recurring.burst(url, due=20_000, stored=stored)
    say("burst", due=20_000, stored=stored, **_rounded(took))
    print(f"20,000 jobs due in one second beside {stored:,} others: the last is ready after {took['last_ready_seconds']:.2f} s\n")
    took = await recurring.delayed(url, due=50_000, stored=stored)
    say("delayed", due=50_000, stored=stored, **_rounded(took))
    print(f"50,000 delayed jobs due at once beside {stored:,} others: the last is ready after {took['last_ready_seconds']:.2f} s\n")
    # The few before and after, since the machine may change its pace meanwhile.
    before = await recurring.tick_cost(url, jobs=1000, seconds=15, stored=stored // 100)
    many = await recurring.tick_cost(url, jobs=1000, seconds=15, stored=stored)
    after = await recurring.tick_cost(url, jobs=1000, seconds=15, stored=stored // 100)
    few = {name: (before[name] + after[name]) / 2 for name in before}
    ratio = {name: many[name] / few[name] for name in few}
    say("tick_cost", jobs=1000, stored=[stored // 100, stored], few=_rounded(few), many=_rounded(many), ratio=_rounded(ratio))
    print(
        f"what a tick costs with {stored:,} jobs stored, by {stored // 100:,}: "
        + ", ".join(f"{n} {r:.2f}" for n, r in ratio.items())
        + "\n"
    )


def say(scenario: str, **values: object) -> None:
    print(json.dumps({"scenario": scenario, **values}), end="\n\n")


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--slots", type=int, default=1000, help="attempts the worker runs at once")
    parser.add_argument("--only", choices=("all", "drain", "time", "steps", "map", "http"), default="all")
    parser.add_argument("--items", type=int, default=1_000_000, help="of the map")
    parser.add_argument("--url", help="a PostgreSQL to use instead of an embedded one")
    parser.add_argument("--rate", type=int, default=1000, help="single jobs a second over HTTP")
    parser.add_argument("--stored", type=int, default=1_000_000, help="jobs in the table that are not due")
    uvloop.run(main(parser.parse_args()))
