"""The sentences that say why a run waits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from foliot.model.concurrency import Concurrency
from foliot.model.explanation import (
    COUNT_MAX,
    concurrency_gate,
    dependencies_gate,
    line_gate,
    overdue_tick_gate,
    pause_gate,
    running_gate,
    summed_up,
    tick_gate,
    worker_gate,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
RUN = UUID(int=1)


def line_of(**columns: Any) -> dict[str, Any]:
    return {"serving": 1, "knowing": 1, "draining": 0, "slots": 2, "busy": 0, "workers": ["w"], "before": 0} | columns


@pytest.mark.parametrize(
    ("columns", "is_open", "detail"),
    [
        ({"serving": 0, "knowing": 0}, False, "no live worker serves the queue 'mail'"),
        ({"knowing": 0}, False, "no live worker of the queue 'mail' knows the task 'send'"),
        ({"busy": 2}, False, "all 2 slots of 1 workers are busy"),
        ({"slots": 0, "draining": 1}, False, "the workers that know it are draining"),
        ({}, True, "1 live workers can take it"),
    ],
)
def test_a_run_waits_for_a_worker_that_can_take_it(columns: dict[str, Any], is_open: bool, detail: str) -> None:
    gate = worker_gate(line_of(**columns), "default/mail", "default/send")
    assert (gate.is_open, gate.detail) == (is_open, detail)


@pytest.mark.parametrize(
    ("before", "detail"),
    [
        (0, "no run is ahead of it in its queue"),
        (1, "1 run is ahead of it in its queue"),
        (7, "7 runs are ahead of it in its queue"),
        (COUNT_MAX, "10000 or more runs are ahead of it in its queue"),
    ],
)
def test_the_runs_ahead_are_counted(before: int, detail: str) -> None:
    gate = line_gate({"state": "ready"}, line_of(before=before))
    assert (gate.is_open, gate.detail) == (before == 0, detail)


def test_a_full_key_names_its_holders() -> None:
    gate = concurrency_gate({"held_by": "limit"}, Concurrency("gpu", 1), 1, [RUN], 2)
    assert not gate.is_open
    assert gate.detail == "key 'gpu': 1 of 1 places are taken, and 2 runs are ahead"
    assert gate.numbers["held_by"] == [str(RUN)]


def test_at_most_three_upstream_runs_are_named() -> None:
    upstream = [
        {"id": UUID(int=number), "name": name, "state": "running", "created_at": NOW}
        for number, name in enumerate("abcd")
    ]
    gate = dependencies_gate({"unmet": 5, "rule": "all_success"}, upstream)
    assert gate is not None
    assert gate.detail == (
        "waits for 5 upstream runs, with the rule all_success: a (running), b (running), c (running) and 2 more"
    )


def test_a_run_of_a_silent_worker_says_that_another_one_takes_over() -> None:
    row = {"worker_id": RUN, "at": NOW, "started_at": NOW - timedelta(seconds=3), "cancel": None}
    assert running_gate(row, {"name": "w1", "is_alive": True}).detail == "runs on w1 for 3.0 s"
    silent = running_gate(row, {"name": "w1", "is_alive": False})
    assert (silent.is_open, silent.detail) == (False, "its worker w1 no longer responds; another worker will run it")


def test_a_pause_says_who_paused_and_why() -> None:
    gate = pause_gate("queue", "default/mail", "the server moves", "ann", NOW, NOW + timedelta(hours=1))
    assert gate.detail == (
        "queue 'mail' has been paused since 2026-05-01T12:00:00Z by ann because the server moves until "
        "2026-05-01T13:00:00Z"
    )


def test_a_job_says_what_became_of_its_tick() -> None:
    assert overdue_tick_gate(NOW, NOW + timedelta(seconds=90), 0).detail == (
        "was due at 2026-05-01T12:00:00Z, 90 s ago, and has not been fired: no scheduler node is alive"
    )
    assert tick_gate(NOW, None, "overlap", NOW, RUN).numbers["blocked_by"] == str(RUN)
    assert "no scheduler node was running until" in tick_gate(NOW, None, "missed", NOW, None).detail


def test_the_first_closed_gate_sums_up() -> None:
    is_open, closed = line_gate({"state": "ready"}, line_of()), line_gate({"state": "ready"}, line_of(before=1))
    assert summed_up([is_open, closed], "ready") == "1 run is ahead of it in its queue"
    assert summed_up([is_open], "ready") == "ready"
