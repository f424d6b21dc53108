"""Concurrency limits: at most `limit` runs of a key at once.

A run with a limit is stored as `held`. The query `admit_runs` (store/sql/limits.sql) counts the running runs of each
key and admits the next ones in order; `settle_full_keys` applies `at_limit` to keys that are full.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.model.keys import Key


class Concurrency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `limit` runs of a key at once; the others wait in order. Stored with its defaults, because SQL reads
    it."""

    key: Key
    limit: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    at_limit: Literal["wait", "drop_new", "cancel_old"] = "wait"
    """The fate of a new run at the limit: it waits, it is dropped, or it cancels the oldest running one."""
