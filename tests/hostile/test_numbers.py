"""Infinity and NaN, which JSON does not have, are refused in all values from user code, and never become null."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import foliot
from foliot.errors import Invalid
from foliot.model.json_text import encode_finite
from foliot.sdk.http_protocol import encode
from foliot.submission.storable_json import encode_jsonb, encode_payloads
from foliot.testing import inline
from tests.support.contexts import KeptContext

NUMBERS = [float("nan"), float("inf"), float("-inf")]


@dataclass
class Measured:
    value: float


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize(
    ("wrap", "place"),
    [
        (lambda number: number, ""),
        (lambda number: {"a": {"b": [None, number]}}, "a.b[1]: "),
        (lambda number: [(1, (number,))], "[0][1][0]: "),
        (lambda number: Measured(number), "value: "),
        (lambda number: {"m": [Measured(1.0), Measured(number)]}, "m[1].value: "),
        (lambda number: {"s": {number}}, "s[0]: "),
    ],
)
def test_they_are_found_at_any_depth(number: float, wrap: Callable[[float], Any], place: str) -> None:
    with pytest.raises(ValueError, match="JSON has neither infinity nor NaN") as refused:
        encode_finite(wrap(number))
    assert str(refused.value).startswith(f"{place}{number!r} is no number")


@pytest.mark.parametrize(
    "value", [None, {"a": None}, "null", {"null": [1.5, None, "nan"]}, {"raw": msgspec.Raw(b"null")}, Measured(1e308)]
)
def test_valid_json_is_encoded_as_usual(value: Any) -> None:
    assert encode_finite(value) == msgspec.json.encode(value)


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_no_client_sends_them(number: float) -> None:
    job = {"task": "t", "payload": {"x": number}, "timeout_seconds": 1}
    for send in (encode, encode_jsonb):
        with pytest.raises(Invalid, match="infinity"):
            send(job)
        with pytest.raises(Invalid, match="infinity"):
            send({"timeout_seconds": number})
    with pytest.raises(Invalid, match="infinity"):
        encode_payloads([{"x": 1}, {"x": number}])


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_progress_refuses_them(number: float) -> None:
    context = KeptContext()
    with pytest.raises(ValueError, match="from 0 to 1"):
        context.progress(number)
    assert context.progress_made is None


def test_a_job_that_returns_one_fails_and_no_job_can_be_created_with_one() -> None:
    app = foliot.App()

    @app.task(retries=5)
    def measure(x: float) -> float:
        return x / 0.5 * 1e308

    with inline(app) as bench:
        job = measure.submit(x=3)
        with pytest.raises(foliot.JobFailed, match="neither infinity nor NaN"):
            job.result()
        assert [one.attempt for one in bench.jobs()] == [1]
        with pytest.raises(Invalid, match="infinity"):
            measure.submit(x=float("inf"))
