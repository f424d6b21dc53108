"""The panels of the Grafana dashboards: their titles and queries.

All servers show the same sums, so a query takes the maximum over them and never their sum. A query names a metric as
`docs/metrics.md` does; `tools/dashboards.py` adds the label of the installation.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    text: str = ""
    """Empty: the description of its metrics."""
    may_be_negative: bool = False


@dataclass(frozen=True)
class Variable:
    """A choice at the top of a dashboard: a label of a metric."""

    name: str
    label: str
    metric: str
    of: str


@dataclass(frozen=True)
class Dashboard:
    name: str
    title: str
    panels: tuple[Panel, ...]
    variables: tuple[Variable, ...] = ()


RATE = "$__rate_interval"


def highest(expr: str, by: str = "") -> str:
    """The maximum over all servers."""
    return f"max by ({by}) ({expr})" if by else f"max({expr})"


def rate(metric: str, by: str = "") -> str:
    return highest(f"rate({metric}[{RATE}])", by)


def quantile(share: float, metric: str, selected: str = "") -> Query:
    spread = f"max by (le) (rate({metric}_bucket{selected}[{RATE}]))"
    return Query(f"histogram_quantile({share}, {spread})", f"{share * 100:g} %")


def quantiles(metric: str, selected: str = "") -> tuple[Query, ...]:
    return tuple(quantile(share, metric, selected) for share in (0.5, 0.95, 0.99))


def latest(metric: str, legend: str, by: str = "") -> Query:
    return Query(highest(metric, by), legend)


OVERVIEW = Dashboard(
    "overview",
    "Foliot",
    (
        Panel("Success", (latest("foliot_job_success_ratio", ""),), "percentunit", "stat", 4),
        Panel("Dead letters", (latest("foliot_dead_letters", ""),), "short", "stat", 4),
        Panel("Workers", (latest("active_workers_total", ""),), "short", "stat", 4),
        Panel("Scheduler nodes", (latest("foliot_schedulers", ""),), "short", "stat", 4),
        Panel("Shards without a node", (latest("foliot_unowned_shards", ""),), "short", "stat", 4),
        Panel("Longest wait in a queue", (Query("max(foliot_queue_lag_seconds)"),), "s", "stat", 4),
        Panel(
            "Worker Throughput",
            (
                Query(rate("jobs_completed_total", "status"), "{{status}}"),
                Query(rate("jobs_scheduled_total"), "scheduled"),
            ),
            "ops",
        ),
        Panel("Waiting jobs", (latest("jobs_pending_total", "{{job_type}}", "job_type"),)),
        Panel("Wait before a start", quantiles("job_queue_wait_seconds"), "s"),
        Panel("Duration of attempts", quantiles("job_duration_seconds"), "s"),
        Panel(
            "Latency of recent jobs",
            (latest("foliot_execution_latency_seconds", "{{percentile}} %", "percentile"),),
            "s",
        ),
        Panel("Queue depth", (Query("topk(10, max by (queue) (foliot_queue_depth))", "{{queue}}"),)),
        Panel(
            "Retries, failures and lost attempts",
            (
                Query(rate("job_retries_total"), "retries"),
                Query(rate("jobs_failed_total"), "failed for good"),
                Query(rate("foliot_runs_lost_total"), "lost with their worker"),
                Query(rate("foliot_stale_writes_refused_total"), "late outcomes refused"),
            ),
            "ops",
        ),
        Panel(
            "Use of slots",
            (
                latest("foliot_running_jobs", "running"),
                latest("foliot_worker_slots", "slots"),
            ),
        ),
        Panel("Utilization", (latest("foliot_worker_utilization_ratio", "used"),), "percentunit"),
        Panel("Share of retried jobs", (latest("foliot_retry_ratio", "retried"),), "percentunit"),
        Panel(
            "Ticks",
            (
                Query(rate("foliot_ticks_fired_total"), "fired"),
                Query(rate("foliot_ticks_noted_total"), "without a run"),
            ),
            "ops",
        ),
        Panel("Lag of exports", (latest("foliot_export_lag_seconds", "{{export}}", "export"),), "s"),
        Panel("Dropped exports", (Query(rate("foliot_exports_dropped_total", "export"), "{{export}}"),), "ops"),
    ),
)
QUEUE = '{queue=~"$queue"}'
QUEUES = Dashboard(
    "queue",
    "Foliot: queues",
    (
        Panel("Depth", (latest(f"foliot_queue_depth{QUEUE}", "{{queue}}", "queue"),)),
        Panel("Longest wait", (latest(f"foliot_queue_lag_seconds{QUEUE}", "{{queue}}", "queue"),), "s"),
        Panel(
            "Change of the depth in five minutes",
            (Query(f"max by (queue) (delta(foliot_queue_depth{QUEUE}[5m]))", "{{queue}}"),),
            text="Above zero: more jobs arrive than workers take.",
            may_be_negative=True,
        ),
        Panel("Wait before a start, all queues", quantiles("job_queue_wait_seconds"), "s"),
        Panel(
            "Slots, all queues",
            (latest("foliot_running_jobs", "running"), latest("foliot_worker_slots", "slots")),
        ),
        Panel("Waiting jobs, all queues", (latest("jobs_pending_total", "{{job_type}}", "job_type"),)),
    ),
    (Variable("queue", "Queue", "foliot_queue_depth", "queue"),),
)
JOB = '{job_name=~"$job_name"}'
SUCCESSES = '{job_name=~"$job_name", status="success"}'
DECIDED = '{job_name=~"$job_name", status=~"success|failed"}'
JOBS = Dashboard(
    "job",
    "Foliot: jobs",
    (
        Panel(
            "Runs",
            (
                Query(
                    f"max by (job_name, status) (rate(foliot_job_runs_total{JOB}[{RATE}]))", "{{job_name}} {{status}}"
                ),
            ),
            "ops",
        ),
        Panel(
            "Success in the last hour",
            (
                Query(
                    f"max by (job_name) (increase(foliot_job_runs_total{SUCCESSES}[1h]))"
                    " / sum by (job_name) (max by (job_name, status)"
                    f" (increase(foliot_job_runs_total{DECIDED}[1h])) > 0)",
                    "{{job_name}}",
                ),
            ),
            "percentunit",
            text="Share of the runs that succeeded or failed.",
        ),
        Panel("Duration", quantiles("foliot_job_run_seconds", JOB), "s"),
        Panel(
            "Since the last success",
            (Query(f"time() - max by (job_name) (foliot_job_last_success_timestamp_seconds{JOB})", "{{job_name}}"),),
            "s",
        ),
    ),
    (Variable("job_name", "Job", "foliot_job_runs_total", "job_name"),),
)
POSTGRESQL = Dashboard(
    "postgresql",
    "Foliot: PostgreSQL",
    (
        Panel(
            "Connections",
            (
                latest("foliot_postgres_connections", "open"),
                latest("foliot_postgres_connections_max", "allowed"),
            ),
        ),
        Panel(
            "Oldest transaction",
            (latest("foliot_postgres_oldest_transaction_seconds", "age"),),
            "s",
            text="A transaction that stays open keeps vacuum from removing dead rows.",
        ),
        Panel("Sessions that wait for a lock", (latest("foliot_postgres_lock_waits", "waiting"),)),
        Panel("Deadlocks", (Query(rate("foliot_postgres_deadlocks_total"), "deadlocks"),), "ops"),
        Panel("Size of the database", (latest("foliot_postgres_size_bytes", "size"),), "bytes"),
        Panel(
            "Largest tables",
            (Query("topk(8, max by (table) (foliot_postgres_table_size_bytes))", "{{table}}"),),
            "bytes",
        ),
        Panel("Dead rows", (Query("topk(8, max by (table) (foliot_postgres_dead_rows))", "{{table}}"),)),
        Panel("Rows", (Query("topk(8, max by (table) (foliot_postgres_live_rows))", "{{table}}"),)),
        Panel("Cache hits", (latest("foliot_postgres_cache_hit_ratio", "hits"),), "percentunit"),
        Panel(
            "Age of transaction ids",
            (latest("foliot_postgres_transaction_id_age", "age"),),
            text="PostgreSQL must vacuum before it reaches two billion.",
        ),
        Panel("Standbys", (latest("foliot_postgres_replicas", "connected"),)),
        Panel("Lag of the slowest standby", (latest("foliot_postgres_replication_lag_seconds", "lag"),), "s"),
    ),
)
DASHBOARDS = (OVERVIEW, QUEUES, JOBS, POSTGRESQL)
