"""Similar failures have the same fingerprint, and different failures have different ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.failure_fingerprint import PATTERN_MAX, WORKER_LOST_PATTERN, error_pattern, pattern_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("customer 7 is unknown", "customer 123456 is unknown"),
        ("run 0199a3f0-7c1e-7b3a-8d55-2f6f0c9e1a11 gone", "run 01990000-0000-7000-8000-000000000001 gone"),
        ("no such file: '/tmp/a/b.txt'", "no such file: '/var/lib/x/y/z.csv'"),
        ("no such file: C:\\data\\a.txt", "no such file: D:\\other\\b.txt"),
        ("object at 0x7f00aa", "object at 0x1234ffee"),
        ("commit 3f2a9c1b77 is bad", "commit deadbeef00 is bad"),
        ("took 1.5 s at 12:30:01", "took 20 s at 23:59:59"),
        ("a  b\nc", "a b c"),
    ],
)
def test_varying_parts_are_left_out(one: str, other: str) -> None:
    assert pattern_of("E", one) == pattern_of("E", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("E", "connection refused"), ("E", "connection reset")),
        (("E", "no"), ("F", "no")),
        (("E", "feedface"), ("E", "deadlock")),
        (("E", "user a/b"), ("E", "user c")),
    ],
)
def test_different_failures_have_different_fingerprints(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert pattern_of(*one) != pattern_of(*other)


def test_a_stored_error_has_the_same_fingerprint() -> None:
    assert (
        error_pattern('{"kind": "ValueError", "message": "customer 7", "traceback": "x"}') == "ValueError: customer <n>"
    )
    assert error_pattern(None) == error_pattern("[]") == error_pattern("{") == ""
    assert WORKER_LOST_PATTERN == "WorkerLost: the worker died <n> times while it ran this"


@given(st.text(max_size=3000))
def test_any_message_has_a_bounded_pattern(message: str) -> None:
    assert len(pattern_of("E", message)) <= PATTERN_MAX
