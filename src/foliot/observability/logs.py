"""Turns events into log lines: readable text on a terminal, one JSON object per line elsewhere."""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import Literal, TextIO

import msgspec

from foliot import alert_events, archive_events, events, request_events
from foliot.brokers.events import BrokerLost, HintsPublished, MessagesTaken, SourceFailed
from foliot.clock import Clock
from foliot.config import Config, presentable
from foliot.coordination.events import CoordinatorLost, MembersGone, WorkersGone
from foliot.events import Event, EventBus, describe

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
# One line per batch is too much at thousands of jobs a second.
QUIET = (
    events.RunsSubmitted,
    events.RunsClaimed,
    events.AttemptsEnded,
    events.RunsFinished,
    events.RunsPromoted,
    events.RunsRetried,
    events.TicksFired,
    MessagesTaken,
    HintsPublished,
    alert_events.AlertSent,
    archive_events.RowsArchived,
)
LOUD = (
    events.ServiceFailed,
    events.LoopBlocked,
    events.StoreInterrupted,
    events.ChildDied,
    events.RunFailed,
    events.RunsLost,
    events.WorkerExpired,
    events.ContainmentIsWeak,
    events.StaleWritesRefused,
    events.JobNotDeclared,
    events.ScheduleUnreadable,
    events.StuckFound,
    events.ClockSetBack,
    events.ExportDropped,
    SourceFailed,
    BrokerLost,
    alert_events.AlertUndeliverable,
    CoordinatorLost,
    MembersGone,
    WorkersGone,
    archive_events.ArchiveFailed,
    archive_events.DaysAwaitArchive,
    events.SchemaIsTooNew,
    request_events.RequestFailed,
)
MARKS = {"debug": "\x1b[2m", "info": "", "warning": "\x1b[33m", "error": "\x1b[31m"}
RESET = "\x1b[0m"
"""The most characters of a field that are shown: an error may quote any output of a job."""
Level = Literal["debug", "info", "warning", "error"]


def level_of(event: Event) -> Level:
    return fixed_level_of(type(event))


def fixed_level_of(kind: type[Event]) -> Level:
    if issubclass(kind, QUIET):
        return "debug"
    return "warning" if issubclass(kind, LOUD) else "info"


class EventLog:
    """Writes each event of a bus as one line."""

    def __init__(self, part: str, *, config: Config, clock: Clock, stream: TextIO | None = None) -> None:
        self._part = part
        self._process = f"{socket.gethostname()}:{os.getpid()}"
        self._clock = clock
        self._stream = stream or sys.stderr
        self._least = LEVELS[config.log_level]
        self._is_json = config.log_format == "json" or (config.log_format == "auto" and not self._stream.isatty())
        self._has_colour = not self._is_json and self._stream.isatty()

    def attach(self, bus: EventBus) -> None:
        bus.subscribe(self._write)

    def _write(self, event: Event) -> None:
        level = level_of(event)
        if LEVELS[level] < self._least:
            return
        name, described = describe(event)
        fields = {key: presentable(value) if isinstance(value, str) else value for key, value in described.items()}
        line = self._as_json(level, name, fields) if self._is_json else self._as_text(level, name, fields)
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            # The log has no reader any more. That is no reason to stop working.
            return

    def _as_json(self, level: Level, name: str, fields: dict[str, object]) -> str:
        entry = {
            "at": self._clock.now(), "level": level, "part": self._part, "process": self._process, "event": name,
            **fields,
        }  # fmt: skip
        return msgspec.json.encode(entry).decode()

    def _as_text(self, level: Level, name: str, fields: dict[str, object]) -> str:
        at = self._clock.now().astimezone().strftime("%H:%M:%S")
        words = " ".join(on_one_line(f"{key}={value}") for key, value in fields.items() if value not in ("", None))
        line = f"{at} {self._part:<10} {name} {words}".rstrip()
        return f"{MARKS[level]}{line}{RESET}" if self._has_colour and MARKS[level] else line


def on_one_line(text: str) -> str:
    """Escapes characters that would break the line or control the terminal."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
