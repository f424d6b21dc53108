"""Measures the recovery from many deaths, one after the other: `python -m tests.chaos deaths`.

Workers with jobs in their hands die at random moments, many of them alive at once; scheduler nodes die one at a time,
in several small clusters side by side, each when the shards of the last one that died have new owners. Real processes,
real SIGKILL, default leases.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.chaos.checker.history import Fault, History, Settings, load
from tests.chaos.cluster import GRACE_SECONDS, LOST_ATTEMPTS_MAX, Cluster, Node
from tests.chaos.figures import Figure, given_back, noticed, owned_again_by_node, quantile
from tests.chaos.machine import Machine
from tests.chaos.recorder import Journal, bring_together, clock_offset, monotonic_us
from tests.chaos.run import settle

SLOTS = 4
NAP_SECONDS = 10
BACKLOG = 60
NODES = 3
"""Of each small cluster: two nodes and a replacement share the shards of a dead node."""
LOOK_SECONDS = 0.1
LAG_SECONDS = 3600.0
"""There are always more jobs than slots: the waiting time means nothing."""
# A worker's name ends with the number of its process.
BUSY = "select distinct w.name from foliot.workers w join foliot.runs r on r.worker_id = w.id and r.state = 'running'"
OWNERS = "select owner_id::text, count(*), min(expires_at) > clock_timestamp() from foliot.shards group by owner_id"
BUCKET_SECONDS = 0.5
BAR = 40
BEGIN = "<!-- deaths: begin -->"
END = "<!-- deaths: end -->"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    directory: Path
    seed: int
    workers: int
    """Deaths of workers."""
    schedulers: int
    """Deaths of scheduler nodes."""
    places: int = 24
    """Workers alive at once."""
    clusters: int = 8
    """Clusters of scheduler nodes side by side."""
    every_seconds: float = 1.0
    """Between two deaths of workers, on average."""


async def kill_many(plan: Plan, say: Say) -> list[History]:
    """Returns the histories: first that of the workers, then those of the small clusters."""
    directories: list[Path] = []
    if plan.workers:
        directories.append(plan.directory / "workers")
        await _kill_workers(plan, directories[0], say)
    if plan.schedulers:
        count = min(plan.clusters, plan.schedulers)
        shares = [plan.schedulers // count + (number < plan.schedulers % count) for number in range(count)]
        small = [plan.directory / f"schedulers-{number}" for number in range(count)]
        directories += small
        await asyncio.gather(
            *(_kill_schedulers(path, shares[place], plan.seed + place, say) for place, path in enumerate(small))
        )
    return [load(path) for path in directories]


async def _kill_workers(plan: Plan, directory: Path, say: Say) -> None:
    chance, journal = random.Random(plan.seed), Journal(directory)
    async with Cluster(directory, say=say, is_plain=True, servers=1, workers=plan.places, slots=SLOTS) as cluster:
        await cluster.started()
        say(f"{plan.places} workers are up")
        feeding = asyncio.create_task(_feed(cluster), name="feed")
        deaths = 0
        async with cluster.session() as sql:
            while deaths < plan.workers and not feeding.done():
                await asyncio.sleep(chance.expovariate(1 / plan.every_seconds))
                busy = {int(name.rpartition(":")[2]) for (name,) in await sql.fetch(BUSY)}
                if at_work := [node for node in cluster.of("worker") if node.pid in busy]:
                    _kill(journal, chance.choice(at_work))
                    deaths += 1
                    if deaths % 50 == 0:
                        say(f"{deaths} workers are dead, {len(at_work)} were at work")
        feeding.cancel()
        await asyncio.wait([feeding])
        if not feeding.cancelled():
            feeding.result()
        await _write_down(cluster, journal, directory, plan.seed, say)


async def _feed(cluster: Cluster) -> None:
    """Keeps more jobs waiting than there are slots."""
    job = {"task": "nap", "payload": {"seconds": NAP_SECONDS}}
    async with cluster.session() as sql, httpx.AsyncClient(base_url=cluster.servers[0]) as client:
        while True:
            ready = await sql.fetchval("select count(*) from foliot.runs where state = 'ready'")
            if ready < BACKLOG:
                (await client.post("/v1/jobs/batch", json={"jobs": [job] * BACKLOG})).raise_for_status()
            await asyncio.sleep(1)


async def _kill_schedulers(directory: Path, deaths: int, seed: int, say: Say) -> None:
    chance, journal = random.Random(seed), Journal(directory)
    async with Cluster(directory, say=say, is_plain=True, servers=0, schedulers=NODES, workers=0) as cluster:
        await cluster.started()
        async with cluster.session() as sql:
            before: set[str] = set()
            for number in range(deaths):
                before = await _shared_out(sql, before)
                # At any point between two renewals.
                await asyncio.sleep(chance.uniform(0, 3))
                _kill(journal, chance.choice(cluster.nodes))
                say(f"{directory.name}: {number + 1} of {deaths} nodes are dead")
            await _shared_out(sql, before)
        await _write_down(cluster, journal, directory, seed, say)


async def _shared_out(sql: Any, before: set[str]) -> set[str]:
    """Waits until each node has its share of the shards and the dead node has none, and returns the nodes."""
    while True:
        rows = await sql.fetch(OWNERS)
        owners = {owner for owner, _, _ in rows if owner}
        is_fair = len(rows) == len(owners) == NODES and min(count for _, count, _ in rows) >= 100 // NODES - 1
        if is_fair and all(is_leased for _, _, is_leased in rows) and (not before or before - owners):
            return owners
        await asyncio.sleep(LOOK_SECONDS)


def _kill(journal: Journal, node: Node) -> None:
    journal.write("faults", Fault("kill", node.name, node.pid, since := monotonic_us(), since))
    node.kill()


async def _write_down(cluster: Cluster, journal: Journal, directory: Path, seed: int, say: Say) -> None:
    quiet_at = monotonic_us()
    offset = clock_offset()
    await settle(cluster, quiet_at + offset, say, Machine(os.getpid()), journal)
    await cluster.stop()
    journal.close()
    settings = Settings(
        seed=seed, quiet_at=quiet_at + offset, ended_at=monotonic_us() + offset, lost_attempts_max=LOST_ATTEMPTS_MAX,
        grace_seconds=GRACE_SECONDS, lag_seconds=LAG_SECONDS,
    )  # fmt: skip
    async with cluster.session() as sql:
        await bring_together(sql, directory, settings, offset)


def page(histories: Sequence[History]) -> str:
    """The figures as Markdown."""
    measured: dict[str, Callable[[History], Iterable[float]]] = {
        "SIGKILL of a worker to the last of its runs given back": given_back,
        "last beat of a killed worker to the last of its runs given back": lambda history: noticed(history)[0],
        "last renewal of a killed scheduler node to the last of its shards owned again": owned_again_by_node,
    }
    found = [
        Figure(name, [seconds for history in histories for seconds in of(history)]) for name, of in measured.items()
    ]
    return "\n\n".join(histogram(figure) for figure in found if figure.seconds) + "\n"


def write_into(path: Path, text: str) -> None:
    """Replaces the text between the markers of a document."""
    document = path.read_text()
    head, begin, rest = document.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no lines {BEGIN} and {END}: put them where the figures belong")
    path.write_text(f"{head}{begin}\n{text}{end}{tail}")


def histogram(figure: Figure) -> str:
    counts: dict[int, int] = {}
    for seconds in figure.seconds:
        counts[int(seconds / BUCKET_SECONDS)] = counts.get(int(seconds / BUCKET_SECONDS), 0) + 1
    p50, p99, most = (quantile(figure.seconds, share) for share in (0.5, 0.99, 1))
    highest = max(counts.values())
    lines = []
    for place in range(min(counts), max(counts) + 1):
        number = counts.get(place, 0)
        lines.append(f"{place * BUCKET_SECONDS:5.1f} s  {number:5}  {'#' * round(BAR * number / highest)}".rstrip())
    said = f"From {figure.name}: {len(figure.seconds)} times, p50 {p50:.1f} s, p99 {p99:.1f} s, most {most:.1f} s."
    return "\n".join([said, "", "```text", *lines, "```"])
