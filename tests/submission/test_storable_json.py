"""Payloads that PostgreSQL would refuse are refused before a transaction begins."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.errors import Invalid
from foliot.submission.storable_json import encode_jsonb, encode_payloads


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"a": "\0"}, "the character NUL"),
        ({"\0": 1}, "the character NUL"),
        ({"a": float("nan")}, "this can't be written as JSON"),
        ({"a": [float("inf")]}, "this can't be written as JSON"),
        ({"a": object()}, "this can't be written as JSON"),
        ({"a": "\ud800"}, "this can't be written as JSON"),
    ],
)
def test_a_value_that_cannot_be_stored_is_refused(value: dict[str, Any], reason: str) -> None:
    with pytest.raises(Invalid, match=f"^payload: {reason}") as refused:
        encode_jsonb(value)
    assert refused.value.field == "payload"


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    value = {"a": "\\u0000", "b": "\\\\u0000"}
    assert json.loads(encode_jsonb(value)) == value


@given(st.lists(st.dictionaries(st.text(alphabet="ab\\u0 "), st.integers() | st.none()), max_size=4))
def test_many_payloads_become_one_array_with_null_for_empty_ones(payloads: list[dict[str, Any]]) -> None:
    assert json.loads(encode_payloads(payloads)) == [payload or None for payload in payloads]
