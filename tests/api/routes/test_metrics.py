"""`/metrics` has the documented names and types, and its values survive the processes that counted them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from foliot.clock import Clock
from foliot.errors import StoreUnavailable
from foliot.events import (
    AttemptsEnded,
    EventBus,
    RunsCancelled,
    RunsClaimed,
    RunsExpired,
    RunsFinished,
    RunsLost,
    RunsRetried,
    RunsSubmitted,
    StaleWritesRefused,
    TicksFired,
)
from foliot.model.histogram import BOUNDS, histogram_of
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.observability import metrics, tallies
from foliot.observability.metrics import METRICS
from foliot.observability.tallies import Tallies
from foliot.sdk.app import App
from foliot.store.store import Store
from tests.support.workers import ended, submit, worker_node

LAB = {
    "jobs_scheduled_total": "counter", "jobs_completed_total": "counter", "jobs_failed_total": "counter",
    "job_retries_total": "counter",
    "job_duration_seconds": "histogram", "job_queue_wait_seconds": "histogram", "jobs_pending_total": "gauge",
    "active_workers_total": "gauge",
}  # fmt: skip
SIX = (
    "foliot_job_success_ratio", "foliot_execution_latency_seconds", "foliot_queue_depth",
    "foliot_worker_utilization_ratio",
    "foliot_retry_ratio", "foliot_dead_letters",
)  # fmt: skip


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 0.0)


# Names that the lab prescribes: gauges with names of counters.
NAMED_BY_OTHERS = {"jobs_pending_total", "active_workers_total"}
BASE_UNITS = re.compile(r"_(milliseconds|microseconds|minutes|hours|days|percent|kilobytes|megabytes)(_|$)")
RESERVED_ENDINGS = ("_count", "_sum", "_bucket", "_info", "_timestamp")
RESERVED_LABELS = {"quantile", "le"}


def complaints(text: str) -> list[str]:
    """The complaints of promtool about a page; without promtool, those of the same rules written here."""
    if (promtool := shutil.which("promtool")) is not None:
        ended = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        found = [line for line in (ended.stdout + ended.stderr).splitlines() if line]
    else:
        found = [complaint for family in text_string_to_metric_families(text) for complaint in own_complaints(family)]
    return [line for line in found if line.split()[0] not in NAMED_BY_OTHERS]


def own_complaints(family: Metric) -> Iterator[str]:
    labels = {label for sample in family.samples for label in sample.labels}
    if not family.documentation:
        yield f"{family.name} has no help text"
    if family.type == "counter" and not all(sample.name.endswith("_total") for sample in family.samples):
        yield f"{family.name} is a counter and does not end in _total"
    if family.type != "counter" and family.name.endswith("_total"):
        yield f"{family.name} is no counter and ends in _total"
    if family.type in ("counter", "gauge") and family.name.endswith(RESERVED_ENDINGS):
        yield f"{family.name} ends as the series of histograms do"
    if BASE_UNITS.search(family.name):
        yield f"{family.name} is not in base units"
    if family.type in ("counter", "gauge") and labels & RESERVED_LABELS:
        yield f"{family.name} has a label of summaries or histograms"


async def test_metric_names_follow_the_prometheus_conventions(client: httpx.AsyncClient, store: Store) -> None:
    app = App()

    @app.task
    async def greet() -> None: ...

    async with worker_node(store, app):
        await ended(store, await submit(store, "greet"))
        text = await page(client)
    assert "foliot_execution_latency_seconds{" in text
    assert complaints(text) == []
    bad = '# HELP wait_quantiles Waits.\n# TYPE wait_quantiles gauge\nwait_quantiles{quantile="0.5"} 1\n'
    assert complaints(text + bad) != []
    assert [
        complaint for family in text_string_to_metric_families(text + bad) for complaint in own_complaints(family)
    ] != []


def test_exceptions_to_the_conventions_are_prescribed_by_the_lab() -> None:
    assert {name for name, kind in LAB.items() if kind == "gauge"} == NAMED_BY_OTHERS


@pytest.fixture
def counting(store: Store, clock: Clock, events: EventBus) -> Tallies:
    return Tallies(store=store, clock=clock, events=events)


async def page(client: httpx.AsyncClient) -> str:
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return answer.text


async def values(client: httpx.AsyncClient) -> dict[str, float]:
    """Values by metric name and label values."""
    return {key(sample): sample.value for sample in samples(await page(client))}


def samples(text: str) -> Iterator[Sample]:
    for family in text_string_to_metric_families(text):
        yield from family.samples


def key(sample: Sample) -> str:
    labels = ",".join(str(value) for value in sample.labels.values())
    return f"{sample.name}{{{labels}}}" if labels else sample.name


async def test_every_promised_metric_is_there_with_its_type_and_a_help_text(client: httpx.AsyncClient) -> None:
    lines = (await page(client)).splitlines()
    for name, kind in LAB.items():
        assert f"# TYPE {name} {kind}" in lines
    for metric in METRICS:
        assert f"# TYPE {metric.name} {metric.kind}" in lines
        assert f"# HELP {metric.name} {metric.text}" in lines
    assert set(SIX) <= {metric.name for metric in METRICS}


async def test_events_of_all_kinds_are_counted_and_added_up_over_processes(
    client: httpx.AsyncClient, store: Store, clock: Clock, events: EventBus, counting: Tallies
) -> None:
    for event in (
        RunsSubmitted(3), TicksFired(2, 1), RunsFinished(4, 1, 1), RunsRetried(5, 2), RunsLost(2, 1), RunsCancelled(1),
        RunsExpired(6),
        StaleWritesRefused(7), RunsClaimed(2, histogram_of([0.2, 400])), AttemptsEnded(3, histogram_of([0.004, 1.0,
            9000.0])),
    ):  # fmt: skip
        events.emit(event)
    await counting.flush()
    bus = EventBus()
    other = Tallies(store=store, clock=clock, events=bus)
    bus.emit(RunsFinished(1, 0, 0))
    bus.emit(RunsSubmitted(10))
    await other.flush()
    found = await values(client)
    assert found["jobs_scheduled_total"] == 15
    assert [found[f"jobs_completed_total{{{status}}}"] for status in ("success", "failed", "cancelled", "skipped")] == [
        5,
        2,
        2,
        6,
    ]
    assert (found["jobs_failed_total"], found["job_retries_total"], found["foliot_runs_lost_total"]) == (2, 3, 3)
    assert (
        found["foliot_stale_writes_refused_total"],
        found["foliot_ticks_fired_total"],
        found["foliot_ticks_noted_total"],
    ) == (7, 2, 1)
    assert (found["job_queue_wait_seconds_count"], found["job_queue_wait_seconds_sum"]) == (2, 400.2)
    assert (found["job_queue_wait_seconds_bucket{0.1}"], found["job_queue_wait_seconds_bucket{0.25}"]) == (0, 1)
    assert (found["job_duration_seconds_bucket{0.005}"], found["job_duration_seconds_bucket{1.0}"]) == (1, 2)
    assert (found["job_duration_seconds_bucket{3600.0}"], found["job_duration_seconds_bucket{+Inf}"]) == (2, 3)


async def test_failed_writes_are_repeated_unless_they_may_have_succeeded(
    events: EventBus, counting: Tallies, client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_doubtful, count in ((False, 1), (True, 10)):

        async def fail(slot: int, counted: object, is_doubtful: bool = is_doubtful) -> None:
            raise StoreUnavailable("away", is_doubtful=is_doubtful)

        events.emit(RunsSubmitted(count))
        with monkeypatch.context() as patch:
            patch.setattr(type(store.metrics), "add_tallies", lambda _, slot, counted, fail=fail: fail(slot, counted))
            with pytest.raises(StoreUnavailable):
                await counting.flush()
        if not is_doubtful:
            await counting.flush()
    await counting.flush()
    assert (await values(client))["jobs_scheduled_total"] == 1


async def test_the_last_counts_are_written_when_a_process_stops(
    store: Store, clock: Clock, events: EventBus, client: httpx.AsyncClient
) -> None:
    async with tallies.counting(store=store, clock=clock, events=events):
        events.emit(RunsSubmitted(2))
    assert (await values(client))["jobs_scheduled_total"] == 2


async def test_a_running_worker_is_counted(client: httpx.AsyncClient, store: Store, counting: Tallies) -> None:
    app = App()

    @app.task(retries=0)
    async def fine() -> None: ...

    @app.task(retries=0)
    async def broken() -> None:
        raise ValueError

    async with worker_node(store, app):
        for run in [await submit(store, "fine") for _ in range(3)] + [await submit(store, "broken")]:
            await ended(store, run)
        await counting.flush()
        found = await values(client)
        assert (
            found["active_workers_total"],
            found["foliot_worker_slots"],
            found["foliot_worker_utilization_ratio"],
        ) == (1, 10, 0)
    assert (found["foliot_job_success_ratio"], found["foliot_retry_ratio"], found["foliot_dead_letters"]) == (
        0.75,
        0,
        1,
    )
    assert found["job_duration_seconds_count"] == found["job_queue_wait_seconds_count"] == 4
    assert 0 <= found["foliot_execution_latency_seconds{50}"] <= found["foliot_execution_latency_seconds{99}"] < 60


async def test_waiting_runs_are_counted_by_type_and_queue(client: httpx.AsyncClient) -> None:
    for job in ({}, {"queue": "mail"}, {"queue": "mail"}, {"delay_seconds": 600}):
        assert (await client.post("/v1/jobs", json={"task": "simulate", **job})).status_code == 201
    assert (await client.post("/v1/jobs", json={"task": "simulate", "name": "often", "every": "1h"})).status_code == 201
    assert (await client.post("/v1/jobs/often/trigger")).status_code == 201
    found = await values(client)
    assert [found[f"jobs_pending_total{{{kind}}}"] for kind in ("immediate", "delayed", "recurring")] == [3, 1, 1]
    assert (found["foliot_queue_depth{default}"], found["foliot_queue_depth{mail}"]) == (2, 2)
    assert found["foliot_queue_lag_seconds{mail}"] >= 0


async def test_queues_beyond_the_limit_share_one_series(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "QUEUES_MAX", 2)
    await store.run_inserts.insert_runs(
        [NewRun(id=new_id(), task="t", queue=f"q{number}") for number in (1, 1, 1, 2, 2, 3, 4)]
    )
    depths = {name: value for name, value in (await values(client)).items() if name.startswith("foliot_queue_depth")}
    assert depths == {"foliot_queue_depth{q1}": 3, "foliot_queue_depth{q2}": 2, "foliot_queue_depth{(other)}": 2}


async def test_the_database_is_queried_once_a_second_for_all_scrapes(
    client: httpx.AsyncClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "FRESH_SECONDS", 3600.0)
    before = await page(client)
    await store.run_inserts.insert_runs([NewRun(id=new_id(), task="t", queue="unseen")])
    assert "unseen" not in await page(client)
    assert "foliot_queue_depth" in before


async def test_openmetrics_is_served_on_request(client: httpx.AsyncClient) -> None:
    answer = await client.get("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
    assert (await client.get("/metrics")).headers["content-type"].startswith("text/plain")


def test_a_histogram_counts_each_duration_once_and_ignores_negative_ones() -> None:
    spread = histogram_of([-0.5, 0.0, BOUNDS[0], BOUNDS[0] * 1.01, 1e9])
    assert (spread.counts[0], spread.counts[1], spread.counts[-1], sum(spread.counts)) == (3, 1, 1, 5)
    assert spread.seconds > 0
