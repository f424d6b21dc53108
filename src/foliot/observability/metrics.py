"""`/metrics` for Prometheus.

Counters and histograms come from the sums that all processes keep in the database (`tallies.py`). Gauges come from a
few queries that read a bounded number of rows. The page reads them at most once a second, for any number of clients.
Only `process_...` describes the one process that answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from foliot.clock import Clock
from foliot.config import Config
from foliot.model.histogram import BOUNDS
from foliot.model.tracing import TracingSettings
from foliot.observability import tallies
from foliot.observability.exemplars import ByBucket, Exemplars, exemplars_of
from foliot.observability.job_metrics import JOB_METRICS, families_of_jobs
from foliot.observability.metric_families import Description, Durations, Labels, counter, gauge, histogram
from foliot.observability.postgres_metrics import (
    POSTGRES_METRICS,
    PostgresReading,
    families_of_postgres,
    read_postgres,
)
from foliot.store.job_series import JobSeries
from foliot.store.metrics import Recent
from foliot.store.overview import Nodes, QueueView
from foliot.store.store import Store

FRESH_SECONDS = 1.0
COUNT_MAX = 100_000
DEAD_MAX = 10_000
QUEUES_MAX = 100
OTHER_QUEUES = "(other)"
RECENT_MAX = 5_000
EXAMPLES_MAX = 500
# The sizes of all tables take longer to read, and change slowly.
POSTGRES_SECONDS = 10.0
RECENT_SPAN = timedelta(hours=1)
QUANTILES = (0.5, 0.95, 0.99)

OWN_METRICS = (
    Description("jobs_scheduled_total", "counter", "Runs created in any way: see above."),
    Description("jobs_completed_total", "counter", "Runs that ended, including workflows and maps.", ("status",)),
    Description("jobs_failed_total", "counter", "Jobs that failed for good."),
    Description("job_retries_total", "counter", "Failed attempts that were retried."),
    Description("job_duration_seconds", "histogram", "Duration of an attempt."),
    Description("job_queue_wait_seconds", "histogram", "From the instant an attempt was due to its start."),
    Description(
        "jobs_pending_total",
        "gauge",
        f"Waiting jobs by type; counts up to {COUNT_MAX:,} of each state.",
        ("job_type",),
    ),
    Description("active_workers_total", "gauge", "Workers with a valid lease."),
    Description(
        "foliot_job_success_ratio",
        "gauge",
        f"Share of jobs that succeeded, among the latest {RECENT_MAX:,} that succeeded or failed in the last hour.",
    ),
    Description(
        "foliot_execution_latency_seconds",
        "gauge",
        "Time from due to started, for the same jobs, by percentile.",
        ("percentile",),
    ),
    Description(
        "foliot_queue_depth",
        "gauge",
        f"Jobs that wait for a worker; the {QUEUES_MAX} deepest queues have their own label.",
        ("queue",),
    ),
    Description("foliot_worker_utilization_ratio", "gauge", "Share of the live workers' slots that are in use."),
    Description(
        "foliot_retry_ratio",
        "gauge",
        "Share of jobs that took more than one attempt, among the same jobs as the success ratio.",
    ),
    Description(
        "foliot_dead_letters",
        "gauge",
        f"Failed jobs that have not been replayed, among the latest {DEAD_MAX:,} failures.",
    ),
    Description("foliot_queue_lag_seconds", "gauge", "How long the first job in the queue has been due.", ("queue",)),
    Description("foliot_running_jobs", "gauge", "Running jobs."),
    Description("foliot_worker_slots", "gauge", "Jobs that the live workers can run at once."),
    Description("foliot_schedulers", "gauge", "Scheduler nodes with a valid lease."),
    Description("foliot_unowned_shards", "gauge", "Shards without a live scheduler node: their jobs do not fire."),
    Description("foliot_ticks_fired_total", "counter", "Due ticks of recurring jobs that became a run."),
    Description(
        "foliot_ticks_noted_total",
        "counter",
        "Rows about due ticks that did not become a run, each with its reason.",
    ),
    Description("foliot_runs_lost_total", "counter", "Attempts lost with their worker."),
    Description("foliot_stale_writes_refused_total", "counter", "Outcomes that came too late and were discarded."),
    Description(
        "foliot_export_lag_seconds",
        "gauge",
        "How far an export is behind, such as `events` or `search_runs`. An export that is switched off is left out.",
        ("export",),
    ),
    Description(
        "foliot_exports_dropped_total",
        "counter",
        "Items that could not be sent to another system, such as spans to `traces` and measurements to `statsd`.",
        ("export",),
    ),
)
METRICS = (*OWN_METRICS, *JOB_METRICS, *POSTGRES_METRICS)
BY_NAME: Mapping[str, Description] = {metric.name: metric for metric in METRICS}
# The metric's label for each way a run ends, and the name of its tally.
ENDINGS = {
    "success": tallies.SUCCEEDED,
    "failed": tallies.FAILED,
    "cancelled": tallies.CANCELLED,
    "skipped": tallies.SKIPPED,
}
COUNTERS = {
    "jobs_scheduled_total": tallies.SUBMITTED,
    "jobs_failed_total": tallies.FAILED,
    "job_retries_total": tallies.RETRIED,
    "foliot_ticks_fired_total": tallies.FIRED,
    "foliot_ticks_noted_total": tallies.NOTED,
    "foliot_runs_lost_total": tallies.LOST,
    "foliot_stale_writes_refused_total": tallies.REFUSED,
}
HISTOGRAMS = {"job_duration_seconds": tallies.LASTED, "job_queue_wait_seconds": tallies.WAITED}
EXPORTS = ("events", "job_series", "search_attempts", "search_runs", "statsd", "task_spans", "traces")
JOB_TYPES = {"immediate": "now", "delayed": "later", "recurring": "recurring"}


@dataclass(frozen=True, slots=True)
class Reading:
    """The values that the page shows, as read from the database at one time."""

    sums: Mapping[str, float]
    queues: list[QueueView]
    nodes: Nodes
    pending: Mapping[str, int]
    recent: Recent
    dead_letters: int
    jobs: list[JobSeries]
    exemplars: Exemplars
    postgres: PostgresReading
    lags: Mapping[str, float]
    """The seconds that each export is behind."""


class MetricsPage:
    def __init__(self, *, store: Store, config: Config, clock: Clock) -> None:
        self._store = store
        self._tracing = TracingSettings.of(config)
        self._has_jobs = bool(config.job_metrics_tag)
        self._clock = clock
        self._lock = asyncio.Lock()
        self._read_at = float("-inf")
        self._reading: Reading
        self._postgres_read_at = float("-inf")
        self._postgres: PostgresReading
        self._process = ProcessCollector(registry=None)

    async def render(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type, in a format that `accept` names."""
        async with self._lock:
            if self._clock.monotonic() - self._read_at >= FRESH_SECONDS:
                self._reading = await self._read()
                self._read_at = self._clock.monotonic()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Page(self._reading, self._process))
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type

    async def _read(self) -> Reading:
        store = self._store
        nodes = await store.overview.count_nodes(None)
        if self._clock.monotonic() - self._postgres_read_at >= POSTGRES_SECONDS:
            self._postgres = await read_postgres(store)
            self._postgres_read_at = self._clock.monotonic()
        latest = await store.metrics.list_latest(nodes.now - RECENT_SPAN, EXAMPLES_MAX)
        return Reading(
            sums=await store.metrics.sum_tallies(),
            queues=await store.overview.list_queues(None, COUNT_MAX),
            nodes=nodes,
            pending=await store.metrics.count_pending(COUNT_MAX),
            recent=await store.metrics.measure_recent(nodes.now - RECENT_SPAN, RECENT_MAX, QUANTILES),
            dead_letters=await store.metrics.count_dead_letters(DEAD_MAX),
            lags=await store.exports.list_lags(),
            jobs=await store.job_series.list_job_series() if self._has_jobs else [],
            exemplars=exemplars_of(latest, self._tracing),
            postgres=self._postgres,
        )


class _Page(Collector):
    """One reading as metrics of the Prometheus library."""

    def __init__(self, reading: Reading, process: Collector) -> None:
        self._reading = reading
        self._process = process

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from families_of(self._reading)
        yield from self._process.collect()


def families_of(reading: Reading) -> Iterator[Metric]:
    sums = reading.sums
    for name, counted in COUNTERS.items():
        yield counter(BY_NAME[name], {(): sums.get(counted, 0.0)})
    yield counter(
        BY_NAME["jobs_completed_total"], {(status,): sums.get(counted, 0.0) for status, counted in ENDINGS.items()}
    )
    never: dict[Labels, float] = {(export,): 0.0 for export in EXPORTS}
    dropped: dict[Labels, float] = {
        (name.removeprefix(tallies.UNEXPORTED),): count
        for name, count in sums.items()
        if name.startswith(tallies.UNEXPORTED)
    }
    yield counter(BY_NAME["foliot_exports_dropped_total"], never | dropped)
    examples = {tallies.LASTED: reading.exemplars.lasted, tallies.WAITED: reading.exemplars.waited}
    for name, measure in HISTOGRAMS.items():
        durations = _durations(measure, sums, examples[measure])
        yield histogram(BY_NAME[name], {(): durations})
    for name, values in gauges_of(reading).items():
        yield gauge(BY_NAME[name], values)
    yield from families_of_jobs(reading.jobs, reading.exemplars)
    yield from families_of_postgres(reading.postgres)


def gauges_of(reading: Reading) -> dict[str, dict[Labels, float]]:
    nodes, recent = reading.nodes, reading.recent
    running = sum(queue.running for queue in reading.queues)
    ended = recent.succeeded + recent.failed
    depths, lags = _by_queue(reading.queues)
    latencies = dict(zip(QUANTILES, recent.latencies, strict=True)) if recent.latencies else {}
    return {
        "jobs_pending_total": {(kind,): reading.pending.get(found, 0) for kind, found in JOB_TYPES.items()},
        "active_workers_total": {(): nodes.workers},
        "foliot_job_success_ratio": {(): recent.succeeded / ended} if ended else {},
        "foliot_execution_latency_seconds": {
            (f"{quantile * 100:g}",): latency for quantile, latency in latencies.items()
        },
        "foliot_queue_depth": depths,
        "foliot_worker_utilization_ratio": {(): min(running / nodes.slots, 1.0)} if nodes.slots else {},
        "foliot_retry_ratio": {(): recent.retried / recent.tried} if recent.tried else {},
        "foliot_dead_letters": {(): reading.dead_letters},
        "foliot_queue_lag_seconds": lags,
        "foliot_running_jobs": {(): running},
        "foliot_worker_slots": {(): nodes.slots},
        "foliot_schedulers": {(): nodes.schedulers},
        "foliot_export_lag_seconds": {(name,): lag for name, lag in reading.lags.items()},
        "foliot_unowned_shards": {(): nodes.shards - nodes.owned_shards},
    }


def _by_queue(queues: list[QueueView]) -> tuple[dict[Labels, float], dict[Labels, float]]:
    """Depth and lag. A job may name any queue, so only the deepest get a series of their own; the others share one."""
    depths: dict[Labels, float] = {}
    lags: dict[Labels, float] = {}
    for place, queue in enumerate(sorted(queues, key=lambda queue: (-queue.ready, queue.name))):
        label = (queue.name if place < QUEUES_MAX else OTHER_QUEUES,)
        depths[label] = depths.get(label, 0.0) + queue.ready
        lags[label] = max(lags.get(label, 0.0), queue.oldest_ready_seconds or 0.0)
    return depths, lags


def _durations(measure: str, sums: Mapping[str, float], examples: ByBucket) -> Durations:
    counts = [sums.get(tallies.bucket_name(measure, index), 0.0) for index in range(len(BOUNDS) + 1)]
    return Durations(counts, sums.get(tallies.sum_name(measure), 0.0), examples)
