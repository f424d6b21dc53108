"""Computes from the measured costs what a large installation needs: 100 million jobs a day, 10,000 a second at the
peak.

The plan is in CPU time, which adds up across machines. Wall time on one small machine says nothing about a large one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

JOBS_A_DAY = 100_000_000
PEAK = 10_000
WORKERS = 10_000
CONCURRENT = 100_000
BUSY_AT_MOST = 0.6
"""Of a core, at the peak: the rest is for backups, vacuum, and the hour in which one machine of two is gone."""
Found = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds for each job, unless the name says otherwise."""

    run_postgres: float
    run_worker: float
    submit_api: float
    submit_postgres: float
    bulk_postgres: float
    tick_scheduler: float
    tick_postgres: float
    alone_postgres: float
    """Of a job that shares no statement with another: it is submitted, claimed and finished by itself."""
    idle_cores: float
    """Of PostgreSQL, for one idle worker."""
    connections: float
    """Of one idle worker."""
    worker_mb: float
    history_bytes: float
    wal_bytes: float


def costs(results: Sequence[Mapping[str, Any]]) -> Costs | None:
    """None until all the scenarios that it needs have been measured."""
    found = {one["scenario"]: one for one in results}
    try:
        idle = found["idle"]["rows"]
        added = idle[-1]["postgres_%_of_a_core"] - idle[0]["postgres_%_of_a_core"]
        return Costs(
            run_postgres=_row(found, "drain", "async, 1 process")["postgres_us"],
            run_worker=_row(found, "drain", "async, 1 process")["worker_us"],
            submit_api=found["http"]["rows"][0]["api_us"],
            submit_postgres=found["http"]["rows"][0]["postgres_us"],
            bulk_postgres=_row(found, "submit", "inside Foliot")["postgres_us"],
            tick_scheduler=found["every_second"]["rows"][0]["scheduler_us"],
            tick_postgres=found["every_second"]["rows"][0]["postgres_us"],
            alone_postgres=found["latency"]["rows"][0]["postgres_us"],
            idle_cores=max(added, 0.0) / 100 / found["idle"]["settings"]["workers"],
            connections=(idle[-1]["connections"] - idle[0]["connections"]) / found["idle"]["settings"]["workers"],
            worker_mb=_row(found, "memory", "worker, idle")["rss_mb"],
            history_bytes=_row(found, "memory", "a job on disk")["history_bytes"],
            wal_bytes=_row(found, "memory", "a job on disk")["wal_bytes"],
        )
    except (KeyError, IndexError, StopIteration):
        return None


def _row(found: Found, scenario: str, words: str) -> Mapping[str, Any]:
    rows: Sequence[Mapping[str, Any]] = found[scenario]["rows"]
    return next(row for row in rows if words in row["name"])


def plan(cost: Costs) -> list[tuple[str, str, str]]:
    """Each quantity with its computation and its value."""
    running, over_http, in_bulk = (
        PEAK * us / 1e6 for us in (cost.run_postgres, cost.submit_postgres, cost.bulk_postgres)
    )
    ticks, alone = PEAK * cost.tick_postgres / 1e6, PEAK * cost.alone_postgres / 1e6
    beats = WORKERS * cost.idle_cores
    postgres = running + over_http + beats
    api, workers, schedulers = (PEAK * us / 1e6 for us in (cost.submit_api, cost.run_worker, cost.tick_scheduler))
    return [
        ("PostgreSQL: jobs run, in batches", f"{PEAK:,}/s x {cost.run_postgres:.0f} us", _cores(running)),
        (
            "PostgreSQL: jobs submitted one by one over HTTP",
            f"{PEAK:,}/s x {cost.submit_postgres:.0f} us",
            _cores(over_http),
        ),
        ("... or in bulk", f"{PEAK:,}/s x {cost.bulk_postgres:.0f} us", _cores(in_bulk)),
        ("... or fired by schedules", f"{PEAK:,}/s x {cost.tick_postgres:.0f} us", _cores(ticks)),
        (
            f"PostgreSQL: {WORKERS:,} workers that wait",
            f"{WORKERS:,} x {100 * cost.idle_cores:.3f} % of a core",
            _cores(beats),
        ),
        (
            "**PostgreSQL** in all, at the peak",
            f"the first, second and fifth, {BUSY_AT_MOST:.0%} busy",
            f"**{_needed(postgres)} cores**",
        ),
        (
            "... if every job were claimed and finished alone",
            f"{PEAK:,}/s x {cost.alone_postgres:.0f} us",
            _cores(alone),
        ),
        (
            "**API processes**",
            f"{PEAK:,}/s x {cost.submit_api:.0f} us, one core each, {BUSY_AT_MOST:.0%} busy",
            f"**{_needed(api)}**",
        ),
        (
            "**Scheduler nodes**, if all jobs are ticks",
            f"{PEAK:,}/s x {cost.tick_scheduler:.0f} us, a core each",
            f"**{_needed(schedulers, 2)}**",
        ),
        (
            "Workers: Foliot's own part",
            f"{PEAK:,}/s x {cost.run_worker:.0f} us, beside what the jobs do",
            _cores(workers),
        ),
        (
            "Workers: memory",
            f"{WORKERS:,} processes x {cost.worker_mb:.0f} MB",
            f"{WORKERS * cost.worker_mb / 1e6:,.1f} TB",
        ),
        (
            "Workers: connections to PostgreSQL",
            f"{WORKERS:,} processes x {cost.connections:g}",
            f"{WORKERS * cost.connections:,.0f}",
        ),
        (
            "... as async slots",
            f"{CONCURRENT:,} jobs at once, 1,000 slots a process",
            f"{CONCURRENT // 1000} processes",
        ),
        (
            "History",
            f"{JOBS_A_DAY:,} a day x {cost.history_bytes:,.0f} bytes",
            f"{JOBS_A_DAY * cost.history_bytes / 1e9:,.0f} GB a day",
        ),
        (
            "Write-ahead log at the peak",
            f"{PEAK:,}/s x {cost.wal_bytes:,.0f} bytes",
            f"{PEAK * cost.wal_bytes / 1e6:,.0f} MB/s",
        ),
    ]


def _cores(busy: float) -> str:
    return f"{busy:.2f} cores"


def _needed(busy: float, least: int = 1) -> int:
    return max(least, math.ceil(busy / BUSY_AT_MOST))
