"""Integers written with a decimal point, as JSON Schema allows, are accepted, and no other values change."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from foliot.api.requests.bodies import decode
from foliot.api.requests.whole_numbers import with_whole_numbers
from foliot.errors import Invalid
from foliot.model.job_request import JobRequest
from foliot.model.workflow import Workflow

job_decoder = msgspec.json.Decoder(JobRequest)


@pytest.mark.parametrize("text", ["5.0", "5e0", "50E-1", "0.05e2", "5.000000"])
def test_an_integer_may_be_written_as_a_float_without_fraction(text: str) -> None:
    limit = f'{{"key": "k", "limit": {text}}}'
    body = f'{{"task": "a", "priority": {text}, "retry_on": ["A", {text}], "concurrency": {limit}}}'
    asked = decode(body.encode(), job_decoder)
    assert (asked.priority, asked.retry_on) == (5, ("A", 5))
    assert asked.concurrency is not None
    assert (asked.concurrency.limit, type(asked.concurrency.limit)) == (5, int)


@pytest.mark.parametrize("text", ["5.5", "1e300", "-0.1", "1001.0", '"5"', "true", "[5.0]", "9007199254740993.0"])
def test_a_number_with_a_fraction_is_not_an_integer(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        decode(f'{{"task": "a", "retries": {text}}}'.encode(), job_decoder)
    assert refused.value.field == "retries"


def test_numbers_in_a_payload_stay_as_they_are() -> None:
    body = (
        b'{"task": "a", "priority": 1.0, "payload": {"x": 1.0, "y": 1, "z": 1.5, "n": '
        b'123456789012345678901234567890, "a": [2.0]}}'
    )
    asked = decode(body, job_decoder)
    assert repr(asked.payload) == repr({"x": 1.0, "y": 1, "z": 1.5, "n": 123456789012345678901234567890, "a": [2.0]})


def test_values_without_such_numbers_stay_unchanged() -> None:
    assert (
        with_whole_numbers(b'{"task": "a", "priority": 5, "payload": {"x": 1.0}, "timeout_seconds": 5.0}', JobRequest)
        is None
    )
    assert with_whole_numbers(b"[1.0]", JobRequest) is None
    steps = with_whole_numbers(b'{"steps": [{"key": "a", "map": {"range": {"stop": 5.0}}}]}', Workflow)
    assert steps == b'{"steps":[{"key":"a","map":{"range":{"stop":5}}}]}'


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/jobs", {"task": "send_invoice", "priority": 509.0}),
        ("/v1/jobs/batch", [{"task": "send_invoice", "priority": 509.0, "retries": 2.0}]),
        ("/v1/jobs/batch", {"jobs": [{"task": "send_invoice", "priority": 509.0}]}),
        ("/v1/workflows", {"steps": [{"key": "a", "task": "send_invoice", "retries": 2.0}]}),
        ("/jobs", {"name": "lab", "priority": 509.0, "max_retries": 1.0}),
        ("/v1/jobs/pause", {"name": "*", "dry_run": True, "expected": 0.0}),
    ],
    ids=["job", "list", "batch", "workflow", "lab", "group"],
)
async def test_every_route_accepts_integers_written_as_floats(client: httpx.AsyncClient, path: str, body: Any) -> None:
    answer = await client.post(path, json=body)
    assert answer.status_code in (200, 201), answer.text


async def test_another_error_in_such_a_body_is_still_named(client: httpx.AsyncClient) -> None:
    for body, field in (
        ({"task": "send_invoice", "priority": 509.0, "retries": -1}, "retries"),
        ({"task": "send_invoice", "priority": 509.0, "nothing": 1}, "nothing"),
        ({"task": "send_invoice", "priority": 509.0, "payload": {"a": "\0"}}, "payload.a"),
    ):
        answer = await client.post("/v1/jobs", json=body)
        assert (answer.status_code, answer.json()["field"]) == (422, field)
