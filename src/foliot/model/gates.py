"""What a job may say of limits: how many of a key at once, how many in a time, whose turn it is, and what a lost
attempt means."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Guarantee = Literal["at_least_once", "at_most_once", "transactional"]
# No control characters: one of them stands between a namespace and its keys.
KEY = r"^[^\x00-\x1f]*$(?!\n)"
Key = Annotated[str, Meta(min_length=1, max_length=200, pattern=KEY)]
# Between two runs of the same fairness key, in ranks (microseconds): enough for all other keys to have their turn.
FAIR_STEP = 3_600_000_000


class Concurrency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No more than `limit` runs of a key at once; the others wait, in order. Stored in full, defaults too: SQL reads
    it."""

    key: Key
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    at_limit: Literal["wait", "drop_new", "cancel_old"] = "wait"
    """Instead of waiting: what comes is dropped, or what runs is cancelled for it."""


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No more than `limit` starts of a key in any `period_seconds`; the others wait, in order."""

    key: Key
    limit: Annotated[int, Meta(ge=1, le=1_000_000)]
    period_seconds: Annotated[float, Meta(gt=0, le=86_400)]


class Circuit(msgspec.Struct, frozen=True):
    """After so many failures in a row a task rests for so long; then one run decides."""

    failures: Annotated[int, Meta(ge=1, le=1_000_000)] = 5
    seconds: Annotated[float, Meta(gt=0, le=86_400)] = 600.0
