"""Turns what happened to runs and ticks into CloudEvents 1.0: JSON, in structured mode. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from foliot.brokers.topics.base import Message
from foliot.model.namespace import bare, namespace_of
from foliot.store.exports import Happening

ATTEMPTS: Mapping[str, str] = {
    "error": "failed",
    "timeout": "timed_out",
    "lost": "lost",
    "snoozed": "snoozed",
    "suspended": "suspended",
}
"""The type of the event for each outcome of an attempt before the last one."""
encode = msgspec.json.Encoder().encode


def messages_of(happening: Happening, topic: str, dead_letter_topic: str) -> Iterator[Message]:
    """The messages of one event: one, and for a run that failed for good a second one."""
    data = data_of(happening)
    yield _message(topic, happening, kind_of(happening), data, suffix=_suffix(happening))
    if dead_letter_topic and happening.subject == "run" and happening.outcome == "failed":
        yield _message(dead_letter_topic, happening, "run.dead", data | dead_letter_of(happening), suffix="dead")


def kind_of(happening: Happening) -> str:
    match happening.subject:
        case "run":
            return f"run.{happening.outcome}"
        case "attempt":
            return f"attempt.{ATTEMPTS[happening.outcome]}"
        case "tick":
            return "tick.skipped"


def data_of(happening: Happening) -> dict[str, Any]:
    if happening.subject == "tick":
        return {
            "job_id": happening.id,
            "name": happening.name and bare(happening.name),
            "task": happening.task and bare(happening.task),
            "queue": happening.queue and bare(happening.queue),
            "tick_at": happening.tick_at,
            "until_at": happening.until_at,
            "reason": happening.reason,
            "blocked_by": happening.blocked_by,
            "tags": happening.tags,
        }
    error = {"kind": happening.error_kind, "message": happening.error_message} if happening.error_kind else None
    return {
        "run_id": happening.id,
        "name": _run_name(happening),
        "task": happening.task and bare(happening.task),
        "queue": happening.queue and bare(happening.queue),
        "outcome": happening.outcome,
        "reason": happening.reason,
        "error": error,
        "attempt": happening.attempt,
        "worker_id": happening.worker_id,
        "job_id": happening.job_id,
        "tick_at": happening.tick_at,
        "parent_id": happening.parent_id,
        "step": happening.step,
        "rerun_of": happening.rerun_of,
        "tags": happening.tags,
        "created_at": happening.created_at,
        "due_at": happening.due_at,
        "started_at": happening.started_at,
        "finished_at": happening.at,
    }


def dead_letter_of(happening: Happening) -> dict[str, Any]:
    """The fields that consumers of dead letters expect."""
    return {
        "job_id": happening.job_id or happening.id,
        "failure_reason": happening.error_message or happening.reason or "failed",
        "retry_count": max(0, (happening.attempt or 0) - 1),
        "timestamp": happening.at,
    }


def _message(topic: str, happening: Happening, kind: str, data: Mapping[str, Any], *, suffix: str) -> Message:
    event_id = f"{happening.id}:{suffix}"
    source = f"/foliot/{namespace_of(happening.queue)}" if happening.queue else "/foliot"
    event = {
        "specversion": "1.0",
        "id": event_id,
        "source": source,
        "type": f"foliot.{kind}",
        "subject": str(happening.id),
        "time": happening.at,
        "datacontenttype": "application/json",
        "data": data,
    }
    return Message(topic, event_id, str(happening.id), kind, encode(event))


def _suffix(happening: Happening) -> str:
    """Makes the id of an event: the same whenever it is sent, and another one for each event of a run."""
    match happening.subject:
        case "run":
            return "end"
        case "attempt":
            return str(happening.token)
        case "tick":
            return str(happening.place_id)


def _run_name(happening: Happening) -> str | None:
    # The name of a recurring job is qualified; that of a single run is free text.
    return bare(happening.name) if happening.name and happening.job_id is not None else happening.name
