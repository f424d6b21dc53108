"""Unique keys: at most one live run for each key.

A unique index on `runs.unique_key` enforces it. On a conflict, the query `find_unique_run` (store/sql/unique_runs.sql)
returns the live run, and `replace_run` replaces it if it has not started.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from foliot.model.keys import KEY

OnConflict = Literal["return_existing", "reject", "replace"]
KEY_LENGTH = 255


class Unique(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most one run with this key waits or runs at a time. `on_conflict` decides what happens to a second one."""

    key: Annotated[str, Meta(min_length=1, max_length=KEY_LENGTH, pattern=KEY)]
    on_conflict: OnConflict = "return_existing"
