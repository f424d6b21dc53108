"""A collector that is dead, hung or lying."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from foliot.clock import Clock
from foliot.config import Config
from foliot.events import Event, ExportDropped
from foliot.exporters.otlp import NotSent
from foliot.exporters.traces import KEEP, TraceExporter
from foliot.store.store import Store
from tests.support.collector import Collector, http_collector
from tests.support.fake_clock import FakeClock
from tests.support.ports import free_port
from tests.support.runs import finish


@pytest.fixture
def clock(fake_clock: FakeClock) -> Clock:
    return fake_clock


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with http_collector() as collector:
        yield collector


async def exporter_for(store: Store, url: str, **settings: str) -> TraceExporter:
    """An exporter that has begun."""
    config = msgspec.structs.replace(Config(), otel_endpoint=url, **settings)
    exporter = TraceExporter(store=store, config=config, clock=store.database.clock, events=store.events)
    await exporter.run_once()
    return exporter


def answer(status: str, body: bytes = b"") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


async def fails(exporter: TraceExporter) -> None:
    with pytest.raises(NotSent):
        await exporter.run_once()


@pytest.mark.parametrize(
    "lie",
    [
        answer("503 Busy"),
        answer("401 Unauthorized"),
        answer("302 Found"),
        answer("200 OK", b"<html>not a collector</html>"),
        answer("200 OK", b"\x00" * 1_000_000),
        b"garbage\r\n\r\n",
        b"",
        None,
    ],
    ids=["busy", "unauthorized", "redirect", "html", "endless", "garbage", "closed", "hung"],
)
async def test_spans_wait_in_the_database_until_the_collector_takes_them(
    store: Store, collector: Collector, fake_clock: FakeClock, lie: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.exporters.traces.SEND_SECONDS", 0.3)
    exporter = await exporter_for(store, collector.url)
    run = await finish(store)
    await fake_clock.advance(1)
    good, collector.answer = collector.answer, lie
    await fails(exporter)
    await fails(exporter)
    collector.answer = good
    collector.spans.clear()
    await exporter.run_once()
    assert {trace_id for trace_id, _ in collector.spans} == {run.hex}
    requests = collector.requests
    await exporter.run_once()
    assert collector.requests == requests
    await exporter.on_stop()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
async def test_endings_that_waited_too_long_for_a_dead_collector_are_dropped_and_counted(
    store: Store, fake_clock: FakeClock, seen: list[Event], protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.exporters.traces.SEND_SECONDS", 1.0)
    exporter = await exporter_for(store, f"http://127.0.0.1:{free_port()}", otel_protocol=protocol)
    await finish(store)
    await fake_clock.advance(1)
    await fails(exporter)
    await fake_clock.advance((KEEP + timedelta(seconds=1)).total_seconds())
    await exporter.run_once()
    (dropped,) = [event for event in seen if isinstance(event, ExportDropped)]
    # The run, its wait and its attempt.
    assert (dropped.export, dropped.count) == ("traces", 3)
    await exporter.run_once()
    await exporter.on_stop()


async def test_spans_that_the_collector_can_not_read_are_dropped_at_once(
    store: Store, collector: Collector, fake_clock: FakeClock, seen: list[Event]
) -> None:
    exporter = await exporter_for(store, collector.url)
    await finish(store)
    await fake_clock.advance(1)
    collector.answer = answer("400 Bad Request")
    await exporter.run_once()
    (dropped,) = [event for event in seen if isinstance(event, ExportDropped)]
    assert dropped.why == "400 Bad Request"
    await exporter.on_stop()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("otel_endpoint", "collector:4317"),
        ("otel_endpoint", "ftp://collector"),
        ("otel_endpoint", "http://user:secret@collector"),
        ("otel_headers", "secret"),
        ("otel_headers", "a b=secret"),
        ("trace_url_template", "javascript:{trace_id}"),
        ("trace_url_template", "http://jaeger/{trace}"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_name_and_without_secrets(setting: str, value: str) -> None:
    with pytest.raises(ValueError, match=setting) as refused:
        msgspec.convert({setting: value}, Config)
    assert "secret" not in str(refused.value)
