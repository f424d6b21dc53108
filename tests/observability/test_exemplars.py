"""A bucket of a histogram leads to a run, and to its trace if there is one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from foliot.clock import Clock
from foliot.config import Config
from foliot.model.states import RunState
from foliot.model.tracing import TracingSettings
from foliot.observability.exemplars import exemplars_of
from foliot.observability.metrics import MetricsPage
from foliot.sdk.app import App
from foliot.store.metrics import LatestRun
from foliot.store.store import Store
from tests.support.workers import ended, submit, worker_node

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ON, OFF, RARE = TracingSettings(True, 1.0), TracingSettings(False, 1.0), TracingSettings(True, 0.0)
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def run(number: int, *, lasted: float, state: RunState = RunState.SUCCEEDED, traceparent: str = "") -> LatestRun:
    return LatestRun(
        UUID(int=number), "charge", state, 1, traceparent or None, 0.001, lasted, NOON - timedelta(seconds=number)
    )


def shown(settings: TracingSettings, *runs: LatestRun) -> list[Mapping[str, str]]:
    return [example.labels for example in exemplars_of(runs, settings).lasted.values()]


def test_the_latest_run_of_each_bucket_is_its_example() -> None:
    found = exemplars_of([run(1, lasted=0.3), run(2, lasted=0.4), run(3, lasted=0.5), run(4, lasted=9e9)], OFF)
    assert {place: example.labels["run_id"][-1] for place, example in found.lasted.items()} == {6: "1", 16: "4"}
    assert found.lasted[6].value == 0.3
    assert list(found.waited) == [0]
    assert found.of_jobs == {"charge": found.lasted}


def test_a_trace_is_named_only_if_it_has_been_sent() -> None:
    sampled = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    unsampled = sampled[:-1] + "0"
    assert shown(ON, run(5, lasted=1)) == [{"run_id": str(UUID(int=5)), "trace_id": UUID(int=5).hex}]
    assert shown(OFF, run(5, lasted=1, traceparent=sampled)) == [{"run_id": str(UUID(int=5))}]
    assert shown(RARE, run(5, lasted=1)) == [{"run_id": str(UUID(int=5))}]
    assert shown(RARE, run(5, lasted=1, traceparent=sampled))[0]["trace_id"] == "a" * 32
    assert shown(ON, run(5, lasted=1, traceparent=unsampled)) == [{"run_id": str(UUID(int=5))}]
    failed = run(5, lasted=1, traceparent=unsampled, state=RunState.FAILED)
    assert shown(RARE, failed)[0]["trace_id"] == "a" * 32


async def test_they_are_shown_to_those_who_accept_openmetrics(store: Store, clock: Clock) -> None:
    app = App()

    @app.task
    async def greet() -> None: ...

    async with worker_node(store, app):
        greeted = await submit(store, "greet")
        await ended(store, greeted)
    config = Config(otel_endpoint="http://collector:4318")
    page, content_type = await MetricsPage(store=store, config=config, clock=clock).render(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    found = re.findall(r"^(job_\w+)_bucket\{.*\} \S+ # \{(.*)\} (\S+) (\S+)$", page.decode(), re.MULTILINE)
    assert {name for name, *_ in found} == {"job_duration_seconds", "job_queue_wait_seconds"}
    assert {labels for _, labels, *_ in found} == {f'run_id="{greeted.id}",trace_id="{greeted.id.hex}"'}
    plain, _ = await MetricsPage(store=store, config=config, clock=clock).render("text/plain")
    assert b" # {" not in plain
