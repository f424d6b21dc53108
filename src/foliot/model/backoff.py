"""Backoff: how long to wait before a failed attempt is retried."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, assert_never

import msgspec
from msgspec import Meta

from foliot.model.field_rules import Rule, all_of, any_of, field_is
from foliot.model.jitter import with_jitter

Wait = Annotated[float, Meta(gt=0, le=31_536_000)]


class Backoff(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The wait before each retry, and how it grows."""

    kind: Literal["fixed", "linear", "exponential", "fibonacci", "list"] = "exponential"
    base_seconds: Annotated[float, Meta(gt=0, le=86_400)] = 2.0
    cap_seconds: Annotated[float, Meta(gt=0, le=31_536_000)] = 3600.0
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """Adds up to this share of the wait at random, so that runs that failed together are not retried together."""
    waits: Annotated[tuple[Wait, ...], Meta(max_length=1000)] = ()
    """For the kind `list`: one wait for each retry, in seconds; the last one repeats."""

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
            raise ValueError("waits: the kind `list` needs waits, such as [1, 5, 30]; no other kind takes any")


DEFAULT_BACKOFF = Backoff()


def wait_seconds(backoff: Backoff, retry: int, chance: float) -> float:
    """The wait before retry number `retry` (from 1). `chance` is a random number in [0, 1)."""
    return with_jitter(min(_grown(backoff, retry), backoff.cap_seconds), backoff.jitter, chance)


def _grown(backoff: Backoff, retry: int) -> float:
    match backoff.kind:
        case "fixed":
            return backoff.base_seconds
        case "linear":
            return backoff.base_seconds * retry
        case "exponential":
            # 2 s, 4 s, 8 s ... The exponent is capped too: 2 ** 1000 does not fit a float.
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
