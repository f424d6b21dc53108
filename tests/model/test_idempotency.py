"""Idempotency keys, and when two requests are the same."""

from __future__ import annotations

import json

import pytest

from foliot.errors import Invalid
from foliot.model.idempotency import KEY_LENGTH, check_idempotency_key, request_fingerprint


@pytest.mark.parametrize("key", ["a", "order 42", "x" * KEY_LENGTH, "!~"])
def test_printable_keys_are_accepted(key: str) -> None:
    assert check_idempotency_key(key) == key


@pytest.mark.parametrize("key", ["", " a", "a ", "x" * (KEY_LENGTH + 1), "a\nb", "\u00e9", "\0"])
def test_other_keys_are_refused(key: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_idempotency_key(key)
    assert refused.value.field == "idempotency_key"


def test_equal_requests_have_equal_fingerprints() -> None:
    job = {"task": "add", "payload": {"a": 1, "b": [2]}}
    plain = request_fingerprint("/v1/jobs", json.dumps(job).encode())
    turned = {"idempotency_key": "k", "payload": {"b": [2], "a": 1}, "task": "add"}
    assert request_fingerprint("/v1/jobs", json.dumps(turned, indent=2).encode()) == plain
    assert request_fingerprint("/v1/workflows", json.dumps(job).encode()) != plain
    assert request_fingerprint("/v1/jobs", json.dumps(job | {"task": "sub"}).encode()) != plain


def test_a_body_nested_too_deeply_is_compared_byte_by_byte() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert request_fingerprint("/v1/jobs", deep) == request_fingerprint("/v1/jobs", deep)
    assert request_fingerprint("/v1/jobs", deep) != request_fingerprint("/v1/jobs", deep + b" ")
