"""RateLimit limits: at most `limit` starts of a key in any period of `period_seconds`.

A run with a limit is stored as `held`. The query `admit_runs` (store/sql/limits.sql) compares the starts of each key in
the table `rate_starts` with the limit and admits runs in order; `forget_rate_starts` deletes old starts.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from foliot.model.keys import Key


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `limit` starts of a key in any `period_seconds`; the others wait in order."""

    key: Key
    limit: Annotated[int, Meta(ge=1, le=1_000_000)]
    period_seconds: Annotated[float, Meta(gt=0, le=86_400)]
