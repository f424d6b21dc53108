"""A metric as the documentation lists it, and as the Prometheus library writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Exemplar

from foliot.model.histogram import BOUNDS

Kind = Literal["counter", "gauge", "histogram"]
Labels = tuple[str, ...]
BUCKETS = (*map(str, BOUNDS), "+Inf")


@dataclass(frozen=True, slots=True)
class Description:
    """A metric as the documentation lists it."""

    name: str
    kind: Kind
    text: str
    labels: Labels = ()


def counter(described: Description, values: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(described.name, described.text, labels=described.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def gauge(described: Description, values: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(described.name, described.text, labels=described.labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


@dataclass(frozen=True, slots=True)
class Durations:
    """One series of a histogram."""

    counts: Sequence[float]
    """One for each bound, and one for durations beyond the last."""
    seconds: float
    exemplars: Mapping[int, Exemplar]
    """By the place of the bucket."""


def histogram(described: Description, series: Mapping[Labels, Durations]) -> Metric:
    family = HistogramMetricFamily(described.name, described.text, labels=described.labels)
    for labels, durations in series.items():
        totals = accumulate(durations.counts)
        buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        for place, (bound, total) in enumerate(zip(BUCKETS, totals, strict=True)):
            found = durations.exemplars.get(place)
            buckets.append((bound, total) if found is None else (bound, total, found))
        family.add_metric(labels, buckets, durations.seconds)
    return family
