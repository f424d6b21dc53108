"""Waits between retries grow by their kind up to the cap; jitter only lengthens them."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.backoff import DEFAULT_BACKOFF, Backoff, wait_seconds
from foliot.model.run import MAX_RETRIES

chances = st.floats(min_value=0, max_value=1, exclude_max=True)
retries = st.integers(min_value=1, max_value=MAX_RETRIES)
backoffs = st.builds(
    Backoff,
    kind=st.sampled_from(["fixed", "linear", "exponential", "fibonacci"]),
    base_seconds=st.floats(min_value=0, max_value=86_400, exclude_min=True),
    cap_seconds=st.floats(min_value=0, max_value=31_536_000, exclude_min=True),
    jitter=st.floats(min_value=0, max_value=1),
)


@given(backoffs, retries, chances)
def test_a_wait_is_positive_finite_and_capped(backoff: Backoff, retry: int, chance: float) -> None:
    wait = wait_seconds(backoff, retry, chance)
    assert 0 < wait <= backoff.cap_seconds * (1 + backoff.jitter)
    assert math.isfinite(wait)


@given(backoffs, retries, chances)
def test_a_wait_never_shrinks_from_one_retry_to_the_next(backoff: Backoff, retry: int, chance: float) -> None:
    assert wait_seconds(backoff, retry, chance) <= wait_seconds(backoff, retry + 1, chance)


@given(backoffs, retries, chances)
def test_jitter_adds_at_most_its_share(backoff: Backoff, retry: int, chance: float) -> None:
    plain = wait_seconds(backoff, retry, 0)
    assert plain <= wait_seconds(backoff, retry, chance) <= plain * (1 + backoff.jitter)


@given(backoffs, chances)
def test_the_first_wait_is_the_base(backoff: Backoff, chance: float) -> None:
    assert wait_seconds(backoff, 1, 0) == min(backoff.base_seconds, backoff.cap_seconds)


@pytest.mark.parametrize(
    ("kind", "waits"),
    [
        ("fixed", [3, 3, 3, 3, 3, 3]),
        ("linear", [3, 6, 9, 12, 15, 18]),
        ("exponential", [3, 6, 12, 24, 48, 96]),
        ("fibonacci", [3, 3, 6, 9, 15, 24]),
    ],
)
def test_each_kind_grows_as_its_name_says(kind: str, waits: list[float]) -> None:
    backoff = msgspec.convert({"kind": kind, "base_seconds": 3}, Backoff)
    assert [wait_seconds(backoff, retry, 0) for retry in range(1, 7)] == waits


def test_a_list_says_each_wait_and_its_last_one_repeats_under_the_same_cap_and_jitter() -> None:
    backoff = msgspec.convert({"kind": "list", "waits": [1, 5, 30], "cap_seconds": 20}, Backoff)
    assert [wait_seconds(backoff, retry, 0) for retry in range(1, 6)] == [1, 5, 20, 20, 20]
    assert wait_seconds(backoff, 2, 0.5) == 5 * 1.05


def test_the_default_starts_at_two_seconds_and_ends_at_an_hour() -> None:
    assert [wait_seconds(DEFAULT_BACKOFF, retry, 0) for retry in (1, 2, 3)] == [2, 4, 8]
    assert wait_seconds(DEFAULT_BACKOFF, MAX_RETRIES, 0) == 3600


@pytest.mark.parametrize(
    "unreasonable",
    [
        {"kind": "random"},
        {"kind": "list"},
        {"kind": "list", "waits": []},
        {"kind": "list", "waits": [0]},
        {"kind": "fixed", "waits": [1]},
        {"base_seconds": 0},
        {"base_seconds": 86_401},
        {"cap_seconds": -1},
        {"jitter": 1.1},
        {"jitter": -0.1},
        {"jitter": float("nan")},
        {"growth": 2},
    ],
)
def test_an_unreasonable_backoff_is_refused(unreasonable: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(unreasonable, Backoff)
