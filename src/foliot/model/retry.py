"""When a failed attempt is tried again: how long to wait, and whether to."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal, assert_never

import msgspec
from msgspec import Meta

from foliot.model.field_rules import Rule, all_of, any_of, field_is

MAX_DELAY_SECONDS = 315_360_000.0

Cause = Annotated[str, Meta(min_length=1, max_length=200)] | Annotated[int, Meta(ge=1, le=255)]
"""What an attempt failed of: the name of an error's class, or of one that it is derived from; or an exit code."""
Causes = Annotated[tuple[Cause, ...], Meta(min_length=1, max_length=100)]
Wait = Annotated[float, Meta(gt=0, le=31_536_000)]


class Backoff(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the wait grows from one retry to the next."""

    kind: Literal["fixed", "linear", "exponential", "fibonacci", "list"] = "exponential"
    base_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 2.0
    cap_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 3600.0
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Up to this share of the wait is added at random, so that what failed together does not come back together."""
    waits: Annotated[tuple[Wait, ...], Meta(max_length=1000)] = ()
    """Of kind `list`: one wait a retry, in seconds; the last one repeats."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        any_of(
            all_of(
                field_is("kind", {"const": "list"}, required=True), field_is("waits", {"minItems": 1}, required=True)
            ),
            all_of(field_is("kind", {"not": {"const": "list"}}), field_is("waits", {"maxItems": 0})),
        ),
    )

    def __post_init__(self) -> None:
        if (self.kind == "list") != bool(self.waits):
            raise ValueError("waits: the kind `list` has some, such as [1, 5, 30], and no other kind has any")


DEFAULT_BACKOFF = Backoff()


def wait_seconds(backoff: Backoff, retry: int, chance: float) -> float:
    """The wait before retry number `retry` (from 1). `chance` is a random number in [0, 1)."""
    return min(_grown(backoff, retry), backoff.cap_seconds) * (1 + backoff.jitter * chance)


def may_retry(*, attempt: int, lost: int, retries: int) -> bool:
    """Whether a failed attempt is followed by another. Lost attempts have a budget of their own and do not count
    here."""
    return attempt - lost <= retries


def is_retryable(causes: Collection[str | int], *, retry_on: Causes | None, never_on: Causes | None) -> bool:
    """Whether what an attempt failed of is worth another one. `never_on` goes before `retry_on`, and without either
    everything is."""
    if never_on is not None and not set(never_on).isdisjoint(causes):
        return False
    return retry_on is None or not set(retry_on).isdisjoint(causes)


def _grown(backoff: Backoff, retry: int) -> float:
    match backoff.kind:
        case "fixed":
            return backoff.base_seconds
        case "linear":
            return backoff.base_seconds * retry
        case "exponential":
            # 2 s, 4 s, 8 s ... Capped in the exponent too: a power of 1000 is no float.
            return float(backoff.base_seconds * 2 ** min(retry - 1, 64))
        case "fibonacci":
            before, now = 0, 1
            for _ in range(min(retry, 90) - 1):
                before, now = now, before + now
            return backoff.base_seconds * now
        case "list":
            return backoff.waits[min(retry, len(backoff.waits)) - 1]
        case _:
            assert_never(backoff.kind)
