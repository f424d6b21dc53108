"""The cost of checking payloads when jobs are submitted: the same payload for a task of which nothing is known, for one
without annotations, and for one with."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from statistics import median
from uuid import UUID

import foliot
from benchmarks import over_http
from benchmarks.bench import Bench
from benchmarks.cpu import Meter
from benchmarks.report import Result, Row, at_most
from foliot.model.namespace import Namespace
from foliot.worker.announcement import OwnAnnouncement

NAME = "checks"
TITLE = "single jobs by POST /v1/jobs whose payloads are checked: the CPU time of the API"
CONNECTIONS = 32
PAYLOAD = {
    "customer_id": 7,
    "at": "2026-01-31T08:00:00Z",
    "order": "0190a6f0-8d3a-7c4e-9b1f-2f6d5c3a1b00",
    "lines": [{"sku": "pen", "count": 2}, {"sku": "ink", "count": 1}],
    "note": "x" * 100,
}


@dataclass
class Line:
    sku: str
    count: int = 1


app = foliot.App()


@app.task
async def loose(customer_id, at, order, lines, note=None):  # type: ignore[no-untyped-def]
    """Only the names of its arguments are checked."""


@app.task
async def typed(customer_id: int, at: dt.datetime, order: UUID, lines: list[Line], note: str | None = None) -> None:
    """The whole payload is checked."""


async def measure(bench: Bench) -> Result:
    rounds, seconds = bench.size(16, full=40, tiny=1), bench.size(1, full=2, tiny=1)
    # Before the server starts, so that it reads them with its first request.
    await bench.store.workers.announce_tasks({"noop": "default"})
    said = OwnAnnouncement(app, Namespace())
    await bench.store.announcements.put_announcement(said.hash, said.text)
    await bench.store.workers.announce_tasks(dict.fromkeys(app.tasks, "default"), announcement=said.hash)
    tasks = ("noop", *app.tasks)
    used: dict[str, list[dict[str, float]]] = {task: [] for task in tasks}
    await bench.empty()
    async with over_http.server(bench.url) as (address, process):
        meter = Meter({"postgres": [bench.postmaster], "api": [process.pid]})
        await _refuse(address)
        for number in range(rounds):
            for task in tasks if number % 2 else reversed(tasks):
                meter.start()
                jobs = await _load(address, task, seconds)
                meter.stop()
                used[task].append(meter.microseconds(jobs))
    names = {
        "noop": "nothing known of the task",
        "loose": "a task without annotations",
        "typed": "a task with annotations",
    }
    shares = {task: median(_shares(used[task], used["noop"])) for task in app.tasks}
    return Result(
        [
            Row(
                names[task],
                {name: median(one[name] for one in used[task]) for name in used[task][0]}
                | ({"added_%": shares[task]} if task in shares else {}),
            )
            for task in tasks
        ],
        [
            at_most("CPU added by the check, without annotations, %", shares["loose"], 5),
            at_most("CPU added by the check, with annotations, %", shares["typed"], 20),
        ],
        {"rounds": rounds, "seconds": seconds},
        [
            "all submit the same payload, in turns; added: by the CPU time of the API, where the check happens, "
            "relative to the turn without a check"
        ],
    )


def _shares(found: list[dict[str, float]], plain: list[dict[str, float]]) -> list[float]:
    return [100 * (one["api_us"] / other["api_us"] - 1) for one, other in zip(found, plain, strict=True)]


async def _refuse(address: str) -> None:
    """Makes sure that the server checks. It reads what has been announced with its first request."""
    for task, payload in (
        ("noop", PAYLOAD),
        ("loose", {**PAYLOAD, "nobody": 1}),
        ("typed", {**PAYLOAD, "at": "never"}),
    ):
        found = await over_http.load("closed", address, 1, 0.2, json.dumps({"task": task, "payload": payload}))
        if found["failures"] != (0 if task == "noop" else found["answered"]):
            raise RuntimeError(f"the server does not check the payload of {task!r} as it should")


async def _load(address: str, task: str, seconds: float) -> int:
    body = json.dumps({"task": task, "payload": PAYLOAD})
    found = await over_http.load("closed", address, CONNECTIONS, seconds, body)
    if found["failures"]:
        raise RuntimeError(f"{found['failures']:g} of {found['answered']:g} jobs of {task!r} were not created")
    return int(found["answered"])
