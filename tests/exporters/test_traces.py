"""Jobs that run, and the spans that arrive at a collector."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

import foliot
from foliot.assembly import Surroundings, tracing_of
from foliot.config import Config
from foliot.exporters.traces import TraceExporter
from foliot.model.ids import new_id
from foliot.model.run import NewRun
from foliot.scheduler.promoter import Promoter
from foliot.store.store import Store
from foliot.worker.direct import DirectBackend
from foliot.worker.node import WorkerNode
from tests.support.collector import Collector, attributes_of, grpc_collector, http_collector
from tests.support.waiting import until
from tests.support.workers import QUICK, ended, submit

app = foliot.App()
TRACE, SUBMITTER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SUBMITTER}-01"
UNSAMPLED = f"00-{TRACE}-{SUBMITTER}-00"


@app.task
async def charge(order: int = 0) -> None:
    with trace.get_tracer("shop").start_as_current_span("pay") as span:
        span.set_attribute("order", order)


@app.task
def pack() -> None:
    trace.get_current_span().set_attribute("boxes", 3)


@app.task(retries=1, backoff=foliot.Backoff(base_seconds=0.01))
async def flaky(ctx: foliot.Context) -> str | None:
    if ctx.attempt == 1:
        raise RuntimeError("not yet")
    return ctx.traceparent


@app.task(retries=0)
async def decline() -> None:
    raise RuntimeError("declined")


def config_for(collector: Collector, **settings: str | float) -> Config:
    return msgspec.structs.replace(QUICK, otel_endpoint=collector.url, **settings)


@asynccontextmanager
async def tracing(store: Store, config: Config) -> AsyncIterator[None]:
    """A worker, the exporter, and what makes retries ready."""
    clock, events = store.database.clock, store.events
    around = Surroundings(config, clock, events)
    exporter = TraceExporter(store=store, config=config, clock=clock, events=events)
    node = WorkerNode(
        backend=DirectBackend(store, config=config, clock=clock, listen_url=store.database.url),
        config=config, clock=clock, events=events, app=app, queues={"default": 10}, tracing=tracing_of(config, around),
    )  # fmt: skip
    await exporter.run_once()
    await node.start()
    await exporter.start()
    promoter = Promoter(store=store, clock=clock, events=events)
    await promoter.start()
    try:
        yield
    finally:
        await promoter.stop()
        await exporter.stop()
        await node.stop()


def options(**given: object) -> str:
    return msgspec.json.encode(given).decode()


def parent_of(span: Span) -> str:
    return span.parent_span_id.hex()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
async def test_a_trace_leads_from_the_submitter_to_what_the_task_records(store: Store, protocol: str) -> None:
    async with http_collector() if protocol == "http" else grpc_collector() as collector:
        config = config_for(collector, otel_protocol=protocol, otel_headers="Authorization=Bearer x,tenant=shop")
        async with tracing(store, config):
            run = await submit(store, "charge", payload='{"order":7}', options=options(traceparent=TRACEPARENT))
            await ended(store, run)
            await collector.having("charge", "pay")
        assert {trace_id for trace_id, _ in collector.spans} == {TRACE}
        whole, wait, attempt, pay = (collector.one(name) for name in ("charge", "wait", "attempt 1", "pay"))
        assert parent_of(whole) == SUBMITTER
        assert parent_of(wait) == parent_of(attempt) == whole.span_id.hex()
        assert parent_of(pay) == attempt.span_id.hex()
        assert attributes_of(pay) == {"order": 7}
        assert attributes_of(whole)["foliot.run.id"] == str(run.id)
        assert whole.start_time_unix_nano == wait.start_time_unix_nano
        assert wait.end_time_unix_nano == attempt.start_time_unix_nano <= attempt.end_time_unix_nano
        assert attempt.end_time_unix_nano == whole.end_time_unix_nano
        assert "foliot" in collector.services
        assert collector.headers["authorization"] == "Bearer x"
        assert collector.headers["tenant"] == "shop"


async def test_a_run_without_a_submitter_has_a_trace_of_its_own_id(store: Store) -> None:
    async with http_collector() as collector, tracing(store, config_for(collector)):
        run = await submit(store, "pack")
        await ended(store, run)
        await collector.having("attempt 1")

        async def notes() -> bool:
            return len(collector.named("pack")) == 2

        await until(notes)
        assert {trace_id for trace_id, _ in collector.spans} == {run.id.hex}
        whole, recorded = sorted(collector.named("pack"), key=lambda span: bool(span.parent_span_id))
        assert attributes_of(recorded) == {"boxes": 3}
        assert parent_of(recorded) == collector.one("attempt 1").span_id.hex()
        assert parent_of(whole) == ""


async def test_retries_and_failures_are_in_the_trace(store: Store) -> None:
    async with http_collector() as collector, tracing(store, config_for(collector)):
        run = await submit(store, "flaky")
        seen = await ended(store, run)
        failed = await submit(store, "decline")
        await ended(store, failed)
        await collector.having("flaky", "decline")
        first, second = (collector.spans[run.id.hex, one.span_id.hex()] for one in attempts_of(collector, run))
        assert (first.name, first.status.code) == ("attempt 1", Status.STATUS_CODE_ERROR)
        assert attributes_of(first.events[0]) == {
            "exception.type": "RuntimeError",
            "exception.message": "not yet",
        }
        assert (second.name, second.status.code) == ("attempt 2", Status.STATUS_CODE_UNSET)
        assert seen.result == f"00-{run.id.hex}-{second.span_id.hex()}-01"
        assert [event.name for event in collector.one("flaky").events] == ["retry"]
        whole = collector.one("decline")
        assert (whole.status.code, whole.status.message) == (Status.STATUS_CODE_ERROR, "declined")


def attempts_of(collector: Collector, run: NewRun) -> list[Span]:
    found = [
        span
        for (trace_id, _), span in collector.spans.items()
        if trace_id == run.id.hex and span.name.startswith("attempt")
    ]
    return sorted(found, key=lambda span: span.start_time_unix_nano)


async def test_an_unsampled_trace_is_sent_only_if_its_run_failed(store: Store) -> None:
    async with http_collector() as collector, tracing(store, config_for(collector, otel_sample_ratio=0)):
        await ended(store, await submit(store, "charge"))
        await ended(store, await submit(store, "charge", options=options(traceparent=UNSAMPLED)))
        await ended(store, await submit(store, "decline", options=options(traceparent=UNSAMPLED)))
        sampled = await submit(store, "charge", options=options(traceparent=TRACEPARENT))
        await ended(store, sampled)
        await collector.having("decline", "charge", "pay")
        assert [attributes_of(span)["foliot.run.id"] for span in collector.named("charge")] == [str(sampled.id)]


async def test_ids_of_spans_are_the_same_when_they_are_sent_again(store: Store) -> None:
    async with http_collector() as collector:
        config = config_for(collector)
        async with tracing(store, config):
            await ended(store, await submit(store, "charge"))
            await collector.having("charge")
        number = len(collector.spans)
        clock, events = store.database.clock, store.events
        again = TraceExporter(store=store, config=config, clock=clock, events=events)
        place = (run_made_long_ago := new_id(), (await store.jobs.database_now()).replace(year=2020))
        found = await store.exports.list_traced((place[1], run_made_long_ago), await store.jobs.database_now(), 10)
        again._until = found[-1].at
        await again.export(found)
        await again.on_stop()
        assert len(collector.spans) == number


async def test_commands_and_requests_carry_the_trace_of_their_attempt(store: Store) -> None:
    async with http_collector() as collector:
        config = config_for(collector, http_allow_private=True)
        async with tracing(store, config):
            command = await submit(store, "shell", payload='{"command":"printf $TRACEPARENT"}')
            printed = (await ended(store, command)).output
            request = await submit(
                store,
                "http",
                payload=options(url=f"{collector.url}/hook", method="POST", body=""),
                options=options(traceparent=TRACEPARENT),
            )
            await ended(store, request)
            await collector.having("shell", "http")
        (attempt,) = attempts_of(collector, command)
        assert printed == f"00-{command.id.hex}-{attempt.span_id.hex()}-01".encode()
        (sending,) = [span for (trace_id, _), span in collector.spans.items() if trace_id == TRACE and is_attempt(span)]
        assert collector.hooks == [f"00-{TRACE}-{sending.span_id.hex()}-01"]


def is_attempt(span: Span) -> bool:
    return span.name.startswith("attempt")


async def test_the_items_of_a_map_and_submitted_jobs_are_in_the_trace(store: Store) -> None:
    async with http_collector() as collector, tracing(store, config_for(collector)):
        payload = {"task": "charge", "map": {"items": [1, 2], "item_name": "order"}}
        run = await submit(store, "map", payload=options(**payload))
        assert (await ended(store, run)).state == "succeeded"
        await collector.having("map", "charge", "pay")
        whole = collector.one("map")
        assert [parent_of(span) for span in collector.named("charge")] == [whole.span_id.hex()] * 2
        assert {trace_id for trace_id, _ in collector.spans} == {run.id.hex}


async def test_a_client_submits_with_the_current_span(store: Store, database_url: str) -> None:
    span = trace.NonRecordingSpan(
        trace.SpanContext(int(TRACE, 16), int(SUBMITTER, 16), is_remote=False, trace_flags=trace.TraceFlags(1))
    )
    await store.workers.announce_tasks({"charge": "default"})
    with foliot.connect(database_url) as connection, trace.use_span(span):
        job = connection.submit("charge", {"order": 1})
    view = await store.runs.get_run(UUID(job.id))
    assert view is not None
    assert view.options == {"traceparent": TRACEPARENT}
