"""Series of single jobs, which request them by a tag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from foliot.observability.exemplars import Exemplars
from foliot.observability.metric_families import Description, Durations, Labels, counter, gauge, histogram
from foliot.store.job_series import JobSeries

RUNS = Description("foliot_job_runs_total", "counter", "Runs of the job that ended.", ("job_name", "status"))
DURATION = Description("foliot_job_run_seconds", "histogram", "Duration of the last attempt of a run.", ("job_name",))
SUCCEEDED = Description(
    "foliot_job_last_success_timestamp_seconds", "gauge", "When a run of the job last succeeded.", ("job_name",)
)
JOB_METRICS = (RUNS, DURATION, SUCCEEDED)


def families_of_jobs(jobs: Sequence[JobSeries], exemplars: Exemplars) -> Iterator[Metric]:
    ended: dict[Labels, float] = {}
    for job in jobs:
        ended[job.job, "success"] = job.succeeded
        ended[job.job, "failed"] = job.failed
        ended[job.job, "cancelled"] = job.cancelled
        ended[job.job, "skipped"] = job.skipped
    yield counter(RUNS, ended)
    durations: dict[Labels, Durations] = {
        (job.job,): Durations(job.buckets, job.seconds, exemplars.of_jobs.get(job.job, {})) for job in jobs
    }
    yield histogram(DURATION, durations)
    yield gauge(SUCCEEDED, {(job.job,): job.succeeded_at.timestamp() for job in jobs if job.succeeded_at is not None})
