"""Log lines: one for each event, as text or JSON, filtered by level, without secrets."""

from __future__ import annotations

import io
import json
import os
import socket
from typing import Any
from uuid import UUID

import msgspec
import pytest

from foliot.config import Config
from foliot.events import Event, EventBus, ProcessStarted, RunFailed, RunsClaimed, ServiceFailed, StoreInterrupted
from foliot.observability.logs import EventLog, level_of
from tests.support.fake_clock import FakeClock

RUN = UUID("0190a6f0-0000-7000-8000-000000000001")
FAILED = RunFailed(RUN, "send_invoice", "error", '{"kind":"ValueError"}', queue="mail", attempt=2)
NASTY = ["two\nlines", "carriage\rreturn", "\x1b[2Jwiped", "nul\0", "lone \ud800 surrogate", "next\x85line"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


def lines(*emitted: Event, stream: io.StringIO | None = None, **settings: Any) -> list[str]:
    stream = stream or io.StringIO()
    bus = EventBus()
    EventLog("worker", config=msgspec.convert(settings, Config), clock=FakeClock(), stream=stream).attach(bus)
    for event in emitted:
        bus.emit(event)
    return stream.getvalue().split("\n")[:-1]


def test_json_is_one_object_a_line_with_every_field_of_the_event() -> None:
    (line,) = lines(FAILED, log_format="json")
    assert json.loads(line) == {
        "at": "2026-03-01T12:00:00Z",
        "level": "warning",
        "part": "worker",
        "process": f"{socket.gethostname()}:{os.getpid()}",
        "event": "RunFailed",
        "run_id": str(RUN),
        "task": "send_invoice",
        "reason": "error",
        "error": '{"kind":"ValueError"}',
        "queue": "mail",
        "attempt": 2,
        "job": "",
        "trace_id": "",
    }


def test_text_is_one_readable_line_and_leaves_out_what_is_empty() -> None:
    assert lines(ProcessStarted("worker"), log_format="text")[0][8:] == " worker     ProcessStarted part=worker"


def test_text_goes_to_terminals_and_json_elsewhere() -> None:
    (piped,), (shown,) = lines(FAILED), lines(FAILED, stream=Terminal())
    assert piped.startswith("{")
    assert "RunFailed" in shown
    assert not shown.startswith("{")


def test_colour_is_for_terminals_only() -> None:
    assert lines(FAILED, stream=Terminal())[0].startswith("\x1b[33m")
    assert "\x1b" not in lines(FAILED, log_format="text")[0]
    assert "\x1b" not in lines(FAILED, stream=Terminal(), log_format="json")[0]


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        ("debug", ["RunsClaimed", "ProcessStarted", "RunFailed"]),
        ("info", ["ProcessStarted", "RunFailed"]),
        ("warning", ["RunFailed"]),
        ("error", []),
    ],
)
def test_only_what_is_of_the_level_or_above_is_logged(level: str, logged: list[str]) -> None:
    written = lines(RunsClaimed(1), ProcessStarted("worker"), FAILED, log_format="json", log_level=level)
    assert [json.loads(line)["event"] for line in written] == logged


def test_batches_are_logged_at_debug_level_only() -> None:
    assert level_of(RunsClaimed(500)) == "debug"


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_database_password_is_never_logged(log_format: str) -> None:
    message = (
        "cannot connect to postgresql://foliot:hunter2@db.example.com/jobs?password=hunter2 today, ask "
        "admin@example.com"
    )
    for event in (StoreInterrupted("connect", message, 1), ServiceFailed("Reaper", message, 0.5)):
        (line,) = lines(event, log_format=log_format)
        assert "hunter2" not in line
        assert "foliot:***@db.example.com/jobs?password=*** today, ask admin@example.com" in line


@pytest.mark.parametrize("error", NASTY)
def test_a_text_line_is_one_line_and_steers_no_terminal_whatever_the_event_holds(error: str) -> None:
    (line,) = lines(ServiceFailed("Reaper", error, 0.5), log_format="text")
    assert line.isprintable()
    assert "ServiceFailed" in line


@pytest.mark.parametrize("error", NASTY)
def test_a_json_line_is_one_line_that_holds_all_that_can_be_encoded(error: str) -> None:
    (line,) = lines(ServiceFailed("Reaper", error, 0.5), log_format="json")
    assert json.loads(line)["error"] == error.encode("utf-8", "backslashreplace").decode()


def test_text_in_other_scripts_stays_readable() -> None:
    assert "übermäßig 仕事" in lines(ServiceFailed("Reaper", "übermäßig 仕事", 0.5), log_format="text")[0]


def test_a_closed_log_stream_does_not_stop_the_process() -> None:
    assert lines(FAILED, stream=Closed()) == []
    closed = io.StringIO()
    closed.close()
    bus = EventBus()
    EventLog("worker", config=Config(log_format="json"), clock=FakeClock(), stream=closed).attach(bus)
    bus.emit(FAILED)
