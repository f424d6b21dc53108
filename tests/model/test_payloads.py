"""Payloads of built-in tasks: accepted values, and the field that is named for others."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.errors import Invalid
from foliot.model.payloads import check_leaf, pointing
from foliot.model.workflow import NESTING_MAX, check_payload

WRONG: list[tuple[str, dict[str, Any] | None, str]] = [
    ("shell", None, "payload"),
    ("shell", {"command": "x", "sandbox": True}, "payload.sandbox"),
    ("shell", {"command": "x", "sandbox": "docker"}, "payload.sandbox"),
    ("shell", {"comand": "x"}, "payload.comand"),
    ("shell", {"command": "x", "argv": ["y"]}, "payload"),
    ("shell", {"argv": ["x", 1]}, "payload.argv[1]"),
    ("shell", {"command": "x", "memory_mb": "1G"}, "payload.memory_mb"),
    ("http", None, "payload"),
    ("http", {"url": "ftp://example.org"}, "payload.url"),
    ("http", {"url": "http://user:secret@example.org"}, "payload.url"),
    ("http", {"url": "http:///path"}, "payload.url"),
    ("http", {"url": "http://[::1"}, "payload.url"),
    ("http", {"url": "http://example.org:99999"}, "payload.url"),
    ("http", {"url": "http://example.org", "headers": {"Host": "other"}}, "payload.headers"),
    ("http", {"url": "http://example.org", "expected_status": 99}, "payload.expected_status"),
    ("simulate", {"fail_rate": 2}, "payload.fail_rate"),
    ("simulate", {"execution_time_ms": "long"}, "payload.execution_time_ms"),
    ("wait", {"seconds": 5}, "payload.seconds"),
    ("map", {"task": "t"}, "payload"),
    ("map", {"task": "t", "map": {"items": [1], "range": {"stop": 2}}}, "payload.map"),
    ("map", {"map": {"items": [1]}}, "payload.task"),
    ("map", {"task": "shell", "map": {"items": ["a"]}}, "payload.payload.item"),
    ("map", {"task": "shell", "map": {"items": ["a", 2], "item_name": "command"}}, "payload.map.items[1]"),
    (
        "map",
        {"task": "shell", "payload": {"sandbox": 1}, "map": {"range": {"stop": 2}, "item_name": "stdin"}},
        "payload.payload.sandbox",
    ),
    ("map", {"task": "http", "map": {"range": {"stop": 2}, "item_name": "body"}}, "payload.map.range"),
    ("workflow", {"steps": []}, "payload.steps"),
    (
        "workflow",
        {"steps": [{"key": "a", "task": "shell", "payload": {"sandbox": 1}}]},
        "payload.steps[0].payload.sandbox",
    ),
    ("workflow", {"steps": [{"key": "a", "task": "shell", "map": {"items": ["a"]}}]}, "payload.steps[0].payload.item"),
]
RIGHT: list[tuple[str, dict[str, Any] | None]] = [
    ("shell", {"command": "x", "sandbox": "bubblewrap"}),
    ("shell", {"argv": ["x"], "environment": {"A": "b"}}),
    ("http", {"url": "https://example.org", "body": [1]}),
    ("simulate", {"further": "keys"}),
    ("simulate", None),
    ("wait", None),
    ("map", {"task": "shell", "map": {"items": ["a", "b"], "item_name": "command"}}),
    ("map", {"task": "simulate", "map": {"range": {"stop": 3}}}),
    ("map", {"task": "anything", "payload": {"sandbox": 1}, "map": {"items": []}}),
    ("anything", {"sandbox": True}),
]


@pytest.mark.parametrize(("task", "payload", "field"), WRONG)
def test_the_wrong_field_is_named(task: str, payload: dict[str, Any] | None, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_payload(task, payload)
    assert refused.value.field == field
    assert refused.value.detail.startswith(f"{field}: ")


@pytest.mark.parametrize(("task", "payload"), RIGHT)
def test_valid_payloads_are_accepted(task: str, payload: dict[str, Any] | None) -> None:
    check_payload(task, payload)


def test_fields_with_later_values_are_only_checked_by_name() -> None:
    payload = {"command": {"$result": "before"}, "sandbox": "process"}
    assert pointing(payload | {"stdin": ["a", {"deep": {"$result": "x", "path": [1]}}]}) == {"command", "stdin"}
    check_leaf("shell", payload, unknown=pointing(payload))
    for wrong, field in (
        (payload | {"sandbox": True}, "payload.sandbox"),
        (payload | {"strange": {"$result": "x"}}, "payload.strange"),
    ):
        with pytest.raises(Invalid) as refused:
            check_leaf("shell", wrong, unknown=pointing(wrong))
        assert refused.value.field == field


def test_nested_maps_are_limited() -> None:
    payload: dict[str, Any] = {"task": "t", "map": {"items": [1]}}
    for _ in range(NESTING_MAX + 1):
        payload = {"task": "map", "payload": payload, "map": {"items": [1]}}
    with pytest.raises(Invalid, match="nested more than"):
        check_payload("map", payload)
