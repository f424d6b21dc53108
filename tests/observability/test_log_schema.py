"""The documented schema of log lines, and lines of real processes that name runs, jobs, traces and requests."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import jsonschema
import pytest
from starlette.types import Receive, Scope, Send
from tools import log_schema

from foliot.api.app import build_app
from foliot.api.request_log import RequestLog
from foliot.clock import Clock, SystemClock
from foliot.config import Config
from foliot.events import Event, EventBus
from foliot.model.ids import new_id
from foliot.model.outcome import Outcome
from foliot.model.run import Claim
from foliot.model.states import RunState
from foliot.observability.logs import EventLog
from foliot.request_events import RequestFailed
from foliot.store.store import Store
from foliot.submission.submitter import Submitter
from foliot.worker.failure_events import failure_of
from tests.support.processes import FoliotProcess

TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
LINE = jsonschema.Draft202012Validator(log_schema.schema())


def test_the_page_and_the_schema_are_up_to_date() -> None:
    assert log_schema.TARGET.read_text() == log_schema.page(), "run `make docs`"
    assert log_schema.SCHEMA_TARGET.read_text() == log_schema.schema_text(), "run `make docs`"


def test_the_schema_refuses_a_line_without_its_fields() -> None:
    line = {"at": "2026-03-01T12:00:00Z", "level": "info", "part": "worker", "process": "a:1", "event": "RunsLost"}
    assert LINE.is_valid(line | {"requeued": 1, "buried": 0})
    assert not LINE.is_valid(line | {"requeued": 1})
    assert not LINE.is_valid(line | {"requeued": "one", "buried": 0})
    assert LINE.is_valid(line | {"event": "LaterEvent"})


def test_every_event_has_fields_that_fit_the_schema() -> None:
    names = {event.__name__ for event in log_schema.event_types()}
    assert {"RunFailed", "RequestFailed", "ArchiveFailed", "BrokerLost", "ProcessStarted"} <= names
    envelope = {"at", "level", "part", "process", "event"}
    for event in log_schema.event_types():
        if event.__name__ != "ProcessStarted":
            assert not envelope & (set(event.__dataclass_fields__) - {"part"}), event


@pytest.mark.process
async def test_lines_of_real_processes_fit_the_schema_and_name_run_job_and_trace(database_url: str) -> None:
    async with FoliotProcess(
        "up", "--port", "0", "--workers", "1", environment={"FOLIOT_DATABASE_URL": database_url}
    ) as up:
        address = (await up.event("ProcessStarted", part="up"))["address"]
        failing = {"task": "simulate", "payload": {"fail_rate": 1}, "retries": 0}
        async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as client:
            made = await client.post("/v1/jobs", json=failing, headers={"traceparent": TRACEPARENT})
            assert made.status_code == 201, made.text
            recurring = await client.post("/v1/jobs", json=failing | {"name": "nightly", "cron": "@daily"})
            assert recurring.status_code == 201, recurring.text
            assert (await client.post("/v1/jobs/nightly/trigger")).status_code == 201
        one_off = await up.event("RunFailed", run_id=made.json()["id"])
        of_job = await up.event("RunFailed", job="nightly")
        assert (one_off["trace_id"], one_off["job"], one_off["queue"], one_off["attempt"]) == (TRACE, "", "default", 1)
        assert of_job["trace_id"] == of_job["run_id"].replace("-", "")
        assert len(up.events) > 10
        for line in up.events:
            LINE.validate(line)


def test_options_that_cannot_be_read_cost_the_line_only_its_origins() -> None:
    claim = Claim(new_id(), 1, 1, 0, "mail", "send", None, '{"tick": 7}')
    told = failure_of(Outcome(claim.run_id, 1, RunState.FAILED, "error"), claim)
    assert (told.job, told.trace_id, told.queue) == ("", claim.run_id.hex, "mail")


@pytest.fixture
async def broken(store: Store, clock: Clock, events: EventBus) -> AsyncIterator[httpx.AsyncClient]:
    """A server with a route that has a bug."""
    app = build_app(
        store=store, submitter=Submitter(store=store, clock=clock, events=events), audit=None, config=Config(),
        clock=clock, is_open=True,
    )  # fmt: skip

    @app.get("/broken")
    async def fail() -> None:
        raise RuntimeError("a bug with postgresql://me:hunter22@db/x")

    transport = httpx.ASGITransport(RequestLog(app, events=events))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8000") as client:
        yield client


async def test_a_fault_is_logged_with_the_id_that_the_answer_names(
    broken: httpx.AsyncClient, events: EventBus, seen: list[Event]
) -> None:
    stream = io.StringIO()
    EventLog("server", config=Config(log_format="json"), clock=SystemClock(), stream=stream).attach(events)
    answer = await broken.get("/broken", headers={"X-Request-Id": "my-request", "traceparent": TRACEPARENT})
    assert (answer.status_code, answer.json()["request_id"]) == (500, "my-request")
    (line,) = map(json.loads, stream.getvalue().splitlines())
    LINE.validate(line)
    assert (line["event"], line["level"]) == ("RequestFailed", "warning")
    assert (line["request_id"], line["trace_id"]) == ("my-request", TRACE)
    assert (line["method"], line["path"]) == ("GET", "/broken")
    assert "raise RuntimeError" in line["traceback"]
    assert "hunter22" not in stream.getvalue()
    assert (await broken.get("/v1/queues")).status_code == 200
    assert sum(isinstance(event, RequestFailed) for event in seen) == 1


async def test_a_request_that_its_client_gave_up_is_no_fault(events: EventBus, seen: list[Event]) -> None:
    async def given_up(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    async def nothing(*_: Any) -> Any:
        return {}

    with pytest.raises(asyncio.CancelledError):
        await RequestLog(given_up, events=events)({"type": "http"}, nothing, nothing)
    assert seen == []
