"""Dead letters have the fields that consumers of such a topic expect."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from foliot.exporters.cloud_events import messages_of
from foliot.store.exports import Happening

AT = datetime(2026, 7, 11, 9, 30, tzinfo=UTC)
RUN, JOB = UUID(int=1), UUID(int=2)
FAILED = Happening(
    at=AT, place_id=RUN, subject="run", id=RUN, token=4, outcome="failed", reason="error", attempt=4, worker_id=None,
    started_at=AT, tick_at=None, until_at=None, blocked_by=None, error_kind="ValueError",
    error_message="no such customer", name=None, task="default/send", queue="default/mail", job_id=None,
    parent_id=None, step=None, rerun_of=None, tags=(), created_at=AT, due_at=AT,
)  # fmt: skip
TOPIC, DEAD = "foliot-events", "dead_letter_queue"


def dead_letters(happening: Happening, topic: str = DEAD) -> list[dict[str, Any]]:
    return [msgspec.json.decode(one.body)["data"] for one in messages_of(happening, TOPIC, topic) if one.topic == topic]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"job_id": str(RUN), "failure_reason": "no such customer", "retry_count": 3}),
        ({"job_id": JOB}, {"job_id": str(JOB)}),
        ({"attempt": 1}, {"retry_count": 0}),
        # It failed before it started.
        ({"attempt": None}, {"retry_count": 0}),
        ({"error_kind": None, "error_message": None, "reason": "timeout"}, {"failure_reason": "timeout"}),
        ({"error_kind": None, "error_message": None, "reason": None}, {"failure_reason": "failed"}),
    ],
)
def test_a_dead_letter_has_the_four_fields(change: dict[str, Any], expected: dict[str, Any]) -> None:
    (letter,) = dead_letters(replace(FAILED, **change))
    found = {name: letter[name] for name in ("job_id", "failure_reason", "retry_count", "timestamp")}
    assert {name: found[name] for name in expected} == expected
    assert found["timestamp"] == "2026-07-11T09:30:00Z"


def test_only_a_run_that_failed_for_good_is_a_dead_letter() -> None:
    assert dead_letters(replace(FAILED, outcome="cancelled")) == []
    assert dead_letters(replace(FAILED, subject="attempt", outcome="error")) == []
    assert dead_letters(FAILED, topic="") == []
