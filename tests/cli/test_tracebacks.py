"""The traceback of an error as people see it."""

from __future__ import annotations

from typing import Any

import click
import pytest

from foliot.cli.commands.dead import dead_letter
from foliot.cli.tracebacks import failure_of, traceback_of
from foliot.clock import SystemClock
from foliot.worker.executors.task_errors import classify_error


def failing() -> None:
    try:
        raise KeyError("the cause")
    except KeyError as error:
        raise ValueError("red \x1b[31m alert") from error


@pytest.fixture
def error() -> dict[str, Any]:
    try:
        failing()
    except ValueError as raised:
        found = classify_error(raised).error
    assert found is not None
    return {"kind": found.kind, "message": found.message, "traceback": found.traceback}


def test_a_traceback_is_shown_with_its_cause_and_without_control_characters(error: dict[str, Any]) -> None:
    shown = click.unstyle(traceback_of(error))
    assert shown.count("Traceback (most recent call last):") == 2
    assert shown.index("KeyError: 'the cause'") < shown.index("direct cause") < shown.index("ValueError: red")
    assert shown.endswith("ValueError: red \\x1b[31m alert")
    assert "in failing" in shown


def test_the_error_is_red_and_the_frames_are_dim(error: dict[str, Any]) -> None:
    lines = traceback_of(error).split("\n")
    assert lines[-1].startswith("\x1b[31m")
    assert lines[1].startswith("\x1b[2m  File")


@pytest.mark.parametrize("error", [None, {}, "text", {"kind": "ExitCode", "message": "exit code 3"}])
def test_an_error_without_a_traceback_is_shown_alone(error: Any) -> None:
    assert traceback_of(error) == ""


def test_a_dead_letter_shows_its_error_even_without_a_traceback() -> None:
    assert click.unstyle(failure_of({"kind": "ExitCode", "message": "exit code 3"})) == "ExitCode: exit code 3"
    run = dict.fromkeys(("name", "rerun_as")) | {
        "id": "1", "status": "failed", "task": "shell", "queue": "default", "attempt": 2,
        "finished_at": "2026-01-01T00:00:00Z", "error": {"kind": "ExitCode", "message": "exit code 3"},
    }  # fmt: skip
    assert click.unstyle(dead_letter(run, SystemClock().now())).endswith("\n\nExitCode: exit code 3")
