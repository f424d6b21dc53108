"""Whether a failed attempt is retried. `backoff.py` decides how long to wait before the retry."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from msgspec import Meta

MAX_DELAY_SECONDS = 315_360_000.0

Cause = Annotated[str, Meta(min_length=1, max_length=200)] | Annotated[int, Meta(ge=1, le=255)]
"""Why an attempt failed: the name of the error's class or of one of its base classes, or an exit code."""
Causes = Annotated[tuple[Cause, ...], Meta(min_length=1, max_length=100)]


def may_retry(*, attempt: int, lost: int, retries: int) -> bool:
    """Whether retries are left. Lost attempts have a budget of their own and do not count."""
    return attempt - lost <= retries


def is_retryable(causes: Collection[str | int], *, retry_on: Causes | None, never_on: Causes | None) -> bool:
    """Whether the causes of a failure allow a retry. `never_on` overrides `retry_on`; without either, all do."""
    if never_on is not None and not set(never_on).isdisjoint(causes):
        return False
    return retry_on is None or not set(retry_on).isdisjoint(causes)
