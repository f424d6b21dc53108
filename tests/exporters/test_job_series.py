"""Jobs with a tag have series of their own, each ending counted once, and a bounded number of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import Event, EventBus, ExportDropped
from foliot.exporters import job_series
from foliot.exporters.exporter import LOOK_SECONDS
from foliot.exporters.job_series import JobSeriesExporter
from foliot.model.states import RunState
from foliot.observability.metrics import MetricsPage
from foliot.store.store import Store
from tests.support.fake_clock import FakeClock
from tests.support.runs import finish

TAGGED = '{"tags": ["metrics"]}'
WITH_SERIES = Config(job_metrics_tag="metrics")


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
def exporter(store: Store, fake_clock: FakeClock, events: EventBus) -> JobSeriesExporter:
    return JobSeriesExporter(store=store, config=WITH_SERIES, clock=fake_clock, events=events)


async def end(store: Store, clock: FakeClock, task: str, state: RunState = RunState.SUCCEEDED, **fields: Any) -> None:
    await finish(store, state, error="no", task=task, **({"options": TAGGED} | fields))
    await clock.advance(0.1)


async def test_tagged_jobs_are_counted_and_others_are_not(
    store: Store, fake_clock: FakeClock, exporter: JobSeriesExporter
) -> None:
    await exporter.run_once()
    for task, state in (("charge", RunState.SUCCEEDED), ("charge", RunState.FAILED), ("mail", RunState.SUCCEEDED)):
        await end(store, fake_clock, task, state)
    await end(store, fake_clock, "untold", options=None)
    await end(store, fake_clock, "other", options='{"tags": ["nightly"]}')
    assert await exporter.run_once() == LOOK_SECONDS
    await end(store, fake_clock, "charge")
    await exporter.run_once()
    await exporter.run_once()
    charge, mail = await store.job_series.list_job_series()
    assert (charge.job, charge.succeeded, charge.failed, sum(charge.buckets)) == ("charge", 2, 1, 3)
    assert (mail.job, mail.succeeded, mail.failed, sum(mail.buckets)) == ("mail", 1, 0, 1)
    assert charge.succeeded_at == charge.ended_at
    assert mail.ended_at < charge.ended_at


async def test_an_ending_counts_once_although_the_answer_got_lost(
    store: Store, fake_clock: FakeClock, exporter: JobSeriesExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exporter.run_once()
    await end(store, fake_clock, "charge")
    add = store.job_series.add_to_job_series

    async def lose_the_answer(*arguments: Any) -> int:
        await add(*arguments)
        # As the database does it with a statement that may be repeated.
        assert await add(*arguments) == 0
        raise StoreUnavailable("gone", is_doubtful=True)

    with monkeypatch.context() as patch:
        patch.setattr(type(store.job_series), "add_to_job_series", lambda _, *arguments: lose_the_answer(*arguments))
        with pytest.raises(StoreUnavailable):
            await exporter.run_once()
    await exporter.run_once()
    (charge,) = await store.job_series.list_job_series()
    assert (charge.succeeded, charge.seconds >= 0, sum(charge.buckets)) == (1, True, 1)


async def test_a_long_backlog_is_counted_in_batches(
    store: Store, fake_clock: FakeClock, exporter: JobSeriesExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_series, "ENDINGS", 2)
    await exporter.run_once()
    for options in (TAGGED, None, None, TAGGED, None):
        await end(store, fake_clock, "charge", options=options)
    assert [await exporter.run_once() for _ in range(3)] == [0.0, 0.0, LOOK_SECONDS]
    assert [job.succeeded for job in await store.job_series.list_job_series()] == [2]


async def test_jobs_beyond_the_limit_are_counted_as_dropped_until_one_is_forgotten(
    store: Store,
    fake_clock: FakeClock,
    exporter: JobSeriesExporter,
    seen: list[Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_series, "JOBS_MAX", 2)
    await exporter.run_once()
    for task in ("a", "b", "c", "c", "a"):
        await end(store, fake_clock, task)
    await exporter.run_once()
    assert [(job.job, job.succeeded) for job in await store.job_series.list_job_series()] == [("a", 2), ("b", 1)]
    dropped = [event for event in seen if isinstance(event, ExportDropped)]
    assert [(event.export, event.count) for event in dropped] == [("job_series", 2)]
    (_, last) = await store.job_series.list_job_series()
    await store.job_series.forget_job_series(last.ended_at + timedelta(microseconds=1))
    await end(store, fake_clock, "c")
    await exporter.run_once()
    assert [(job.job, job.succeeded) for job in await store.job_series.list_job_series()] == [("a", 2), ("c", 1)]


async def test_the_page_shows_them_where_the_setting_names_the_tag(
    store: Store, fake_clock: FakeClock, exporter: JobSeriesExporter
) -> None:
    await exporter.run_once()
    await end(store, fake_clock, "charge")
    await end(store, fake_clock, "charge", RunState.FAILED)
    await exporter.run_once()
    page, _ = await MetricsPage(store=store, config=WITH_SERIES, clock=fake_clock).render("")
    lines = page.decode().splitlines()
    assert 'foliot_job_runs_total{job_name="charge",status="success"} 1.0' in lines
    assert 'foliot_job_runs_total{job_name="charge",status="failed"} 1.0' in lines
    assert 'foliot_job_run_seconds_count{job_name="charge"} 2.0' in lines
    assert [line for line in lines if line.startswith("foliot_job_last_success_timestamp_seconds{")]
    without, _ = await MetricsPage(store=store, config=Config(), clock=fake_clock).render("")
    assert b"charge" not in without
