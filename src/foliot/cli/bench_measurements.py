"""The measurements of `foliot bench`, made through the public API only, so that they show what users get.

Each part gets a share of the time, and stops early once it has enough runs. At the end, also after Ctrl-C, the
recurring job is deleted and unfinished runs are cancelled.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from foliot.cli.progress import Progress, spinner
from foliot.clock import SystemClock, block
from foliot.errors import Busy, Conflict, FoliotError, NotFound
from foliot.model.ids import new_id
from foliot.sdk.operations import Operations

NOTHING = {"execution_time_ms": 0}
SINGLES_MAX, BATCH_SIZE, BATCHES_MAX, PROBES_MAX, TICKS_MAX = 1000, 500, 10, 60, 5
# Shares of the time: single jobs, batches, draining the queue, and probes of an idle system.
SHARES = (0.2, 0.2, 0.25, 0.35)
PROBE_PAUSE_SECONDS = 0.05
POLL_SECONDS = 0.1
CLEAN_UP_SECONDS = 8.0
LIVE = "pending,scheduled,running,retrying"
PAGE = 200


@dataclass(frozen=True, slots=True)
class Rate:
    number: int
    per_second: float


@dataclass(frozen=True, slots=True)
class Spread:
    number: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Measured:
    queue: str
    workers: int
    slots: int
    connections: int
    batch_size: int
    seconds: float
    submitted: Rate
    batched: Rate
    executed: Rate
    answer_ms: Spread
    start_ms: Spread
    finish_ms: Spread
    tick_ms: Spread
    left: int
    """Number of runs that did not finish in time and were cancelled."""


@dataclass(slots=True)
class Submitted:
    number: int = 0
    answer_seconds: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Bench:
    def __init__(self, client: Operations, *, queue: str, seconds: float, connections: int, is_quiet: bool) -> None:
        self._client = client
        self._queue = queue
        self._seconds = seconds
        self._connections = connections
        self._clock = SystemClock()
        self._name = f"foliot bench {str(new_id())[-12:]}"
        self._is_stopped = threading.Event()
        self._is_quiet = is_quiet

    def run(self) -> Measured:
        workers, slots = self._workers()
        began_at = self._clock.monotonic()
        left = 0
        try:
            singles, single_rate = self._singles()
            batch_began_at = self._clock.monotonic()
            batch_rate = self._batches()
            left = self._drain(self._seconds * SHARES[2])
            execute_rate = _rate(max(batch_rate.number - left, 0), self._clock.monotonic() - batch_began_at)
            with self._recurring() as job:
                until = self._clock.monotonic() + self._seconds * SHARES[3]
                probes = self._probes(until)
                ticks = self._ticks(job, until)
            seconds = self._clock.monotonic() - began_at
        finally:
            self._is_stopped.set()
            self._cancel_rest()
        return Measured(
            queue=self._queue,
            workers=workers,
            slots=slots,
            connections=self._connections,
            batch_size=BATCH_SIZE,
            seconds=seconds,
            submitted=single_rate,
            batched=batch_rate,
            executed=execute_rate,
            answer_ms=_spread(singles.answer_seconds),
            start_ms=_spread([_between(run, "created_at", "started_at") for run in probes]),
            finish_ms=_spread([_between(run, "created_at", "finished_at") for run in probes]),
            tick_ms=_spread([_between(run, "tick_at", "started_at") for run in ticks]),
            left=left,
        )

    def _workers(self) -> tuple[int, int]:
        """The number of workers and slots of the queue. Raises an error if no worker serves it."""
        queues = {queue["name"]: queue for queue in self._client.list_queues().document["items"]}
        queue = queues.get(self._queue)
        if queue is None or not queue["slots"]:
            served = ", ".join(sorted(name for name, found in queues.items() if found["slots"])) or "none"
            raise NotFound(
                f"no worker serves the queue {self._queue!r} (queues with workers: {served}); start one with "
                "`foliot worker`, or choose another queue with --queue"
            )
        if queue["paused"]:
            raise Conflict(f"the queue {self._queue!r} is paused; resume it, or choose another with --queue")
        return queue["workers"], queue["slots"]

    def _singles(self) -> tuple[Submitted, Rate]:
        done, began_at = Submitted(), self._clock.monotonic()
        until, numbers = began_at + self._seconds * SHARES[0], itertools.count()
        progress = self._progress("submitting one by one", SINGLES_MAX)

        def submit() -> None:
            while not self._is_stopped.is_set() and self._clock.monotonic() < until and next(numbers) < SINGLES_MAX:
                sent_at = self._clock.monotonic()
                self._submit()
                with done.lock:
                    done.answer_seconds.append(self._clock.monotonic() - sent_at)
                    done.number += 1
                progress.advance()

        with progress:
            self._run_all([submit] * self._connections)
        return done, _rate(done.number, self._clock.monotonic() - began_at)

    def _batches(self) -> Rate:
        began_at, number = self._clock.monotonic(), 0
        with self._progress("submitting in batches", BATCHES_MAX * BATCH_SIZE) as progress:
            while number < BATCHES_MAX * BATCH_SIZE and self._clock.monotonic() - began_at < self._seconds * SHARES[1]:
                self._client.create_jobs([self._job()] * BATCH_SIZE)
                number += BATCH_SIZE
                progress.advance(BATCH_SIZE)
        return _rate(number, self._clock.monotonic() - began_at)

    def _drain(self, seconds: float) -> int:
        """Waits until all runs have ended, cancels the rest after the timeout, and returns their number."""
        until = self._clock.monotonic() + seconds
        with spinner("waiting for all runs to end", is_quiet=self._is_quiet):
            while (left := len(self._live())) and self._clock.monotonic() < until:
                block(POLL_SECONDS)
        # Runs are listed newest first, so one page may not show all that are left.
        return self._cancel_rest() if left else 0

    @contextmanager
    def _recurring(self) -> Iterator[str]:
        job = self._client.create_job({**self._job(), "every": "1s", "overlap": "allow_all"}).document["id"]
        try:
            yield job
        finally:
            self._client.delete_job(job)

    def _probes(self, until: float) -> list[dict[str, Any]]:
        ids: list[str] = []
        with self._progress("probing latency", PROBES_MAX) as progress:
            while len(ids) < PROBES_MAX and self._clock.monotonic() < until:
                ids.append(self._submit())
                progress.advance()
                block(PROBE_PAUSE_SECONDS)
        return self._ended(ids, until)

    def _ticks(self, job: str, until: float) -> list[dict[str, Any]]:
        while True:
            ids = [
                tick["run_id"]
                for tick in self._client.list_ticks(job, limit=TICKS_MAX).document["items"]
                if tick["run_id"]
            ]
            if len(ids) >= TICKS_MAX or self._clock.monotonic() > until:
                return self._ended(ids, until)
            block(POLL_SECONDS)

    def _ended(self, ids: Sequence[str], until: float) -> list[dict[str, Any]]:
        """The given runs that complete before the deadline."""
        found = []
        for run_id in ids:
            with suppress(TimeoutError):
                found.append(self._client.wait_for_job(run_id, max(until - self._clock.monotonic(), 0.1)).document)
        return [run for run in found if run["status"] == "completed"]

    def _progress(self, label: str, total: int) -> Progress:
        return Progress(label, total, is_quiet=self._is_quiet)

    def _submit(self) -> str:
        while True:
            try:
                return str(self._client.create_job(self._job()).document["id"])
            except Busy as error:
                if self._is_stopped.wait(error.retry_after):
                    raise

    def _job(self) -> dict[str, Any]:
        return {"task": "simulate", "payload": NOTHING, "name": self._name, "queue": self._queue, "retries": 0}

    def _live(self) -> list[str]:
        filters = {"state": LIVE, "queue": self._queue, "task": "simulate", "text": self._name}
        return [run["id"] for run in self._client.list_runs(filters, limit=PAGE).document["items"]]

    def _cancel_rest(self) -> int:
        """Cancels unfinished runs and returns their number. Gives up after a timeout, or if the server fails."""
        until, cancelled = self._clock.monotonic() + CLEAN_UP_SECONDS, 0
        with suppress(FoliotError):
            while (live := self._live()) and self._clock.monotonic() < until:
                for run_id in live:
                    self._client.cancel_run(run_id, reason="the benchmark has ended", force=True)
                cancelled += len(live)
        return cancelled

    def _run_all(self, functions: Sequence[Callable[[], None]]) -> None:
        """Runs the functions in threads. The first error, or Ctrl-C, stops all of them and is raised."""
        with ThreadPoolExecutor(len(functions)) as pool:
            futures = [pool.submit(function) for function in functions]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self._is_stopped.set()
                raise


def _rate(number: int, seconds: float) -> Rate:
    return Rate(number, number / max(seconds, 0.001))


def _spread(seconds: Sequence[float]) -> Spread:
    """Percentiles in milliseconds."""
    found = sorted(1000 * value for value in seconds)
    if not found:
        return Spread(0, 0, 0, 0)
    p50, p95, p99 = (found[math.ceil(share * len(found)) - 1] for share in (0.5, 0.95, 0.99))
    return Spread(len(found), p50, p95, p99)


def _between(run: dict[str, Any], earlier: str, later: str) -> float:
    return (datetime.fromisoformat(run[later]) - datetime.fromisoformat(run[earlier])).total_seconds()
