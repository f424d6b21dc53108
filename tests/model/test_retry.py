"""Which failures are retried, and the number of retries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.model.retry import is_retryable, may_retry
from foliot.model.run import MAX_RETRIES


@pytest.mark.parametrize(
    ("retry_on", "never_on", "expected"),
    [
        (None, None, True),
        (("OSError",), None, True),
        (("ValueError",), None, False),
        ((75,), None, True),
        (("75",), None, False),
        (None, ("ConnectionError",), False),
        (None, (1, 2), True),
        (("OSError",), ("ConnectionError",), False),
    ],
)
def test_causes_decide_whether_a_failure_is_retried(
    retry_on: tuple[str | int, ...] | None, never_on: tuple[str | int, ...] | None, expected: bool
) -> None:
    assert is_retryable({"ConnectionError", "OSError", 75}, retry_on=retry_on, never_on=never_on) is expected


@given(st.integers(min_value=0, max_value=MAX_RETRIES), st.integers(min_value=0, max_value=100))
def test_a_run_gets_all_its_retries_and_lost_attempts_do_not_count(allowed: int, lost: int) -> None:
    granted = [own for own in range(1, allowed + 3) if may_retry(attempt=own + lost, lost=lost, retries=allowed)]
    assert granted == list(range(1, allowed + 1))
