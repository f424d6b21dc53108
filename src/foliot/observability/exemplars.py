"""Picks the runs that lead from a bucket of a histogram to an example of it."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.samples import Exemplar, Timestamp

from foliot.model.histogram import BOUNDS
from foliot.model.states import RunState
from foliot.model.tracing import TracingSettings, trace_of
from foliot.store.metrics import LatestRun

ByBucket = Mapping[int, Exemplar]
"""By the place of the bucket among the bounds."""


@dataclass(frozen=True, slots=True)
class Exemplars:
    """The latest run of each bucket."""

    waited: ByBucket
    lasted: ByBucket
    of_jobs: Mapping[str, ByBucket]
    """The same durations, of single jobs."""


def exemplars_of(latest: Iterable[LatestRun], tracing: TracingSettings) -> Exemplars:
    """Picks from runs of which the latest comes first."""
    waited: dict[int, Exemplar] = {}
    lasted: dict[int, Exemplar] = {}
    of_jobs: defaultdict[str, dict[int, Exemplar]] = defaultdict(dict)
    for run in latest:
        labels, at = _labels(run, tracing), Timestamp(run.finished_at.timestamp(), 0)
        for found, seconds in ((waited, run.waited), (lasted, run.lasted), (of_jobs[run.job], run.lasted)):
            # Two clocks may disagree slightly, so a negative duration counts as zero.
            value = max(seconds, 0.0)
            found.setdefault(bisect_left(BOUNDS, value), Exemplar(labels, value, at))
    return Exemplars(waited, lasted, of_jobs)


def _labels(run: LatestRun, tracing: TracingSettings) -> dict[str, str]:
    """The run, and its trace if that has been sent."""
    labels = {"run_id": str(run.id)}
    if tracing.is_on:
        trace = trace_of(run.id, run.traceparent, tracing.ratio)
        if trace.is_sampled or run.state is RunState.FAILED or run.attempt > 1:
            labels["trace_id"] = f"{trace.trace_id:032x}"
    return labels
