"""Fairness keys: runs of different keys take turns in a queue, so that one tenant's burst does not delay the others.

The query `insert_fair_runs` (store/sql/run_inserts.sql) places a run one `FAIR_STEP` behind the last waiting run of its
key. The first run of a new key goes next in line.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from foliot.model.keys import Key

FairnessKey = Annotated[Key, Meta(description="Runs of different keys take turns in their queue.")]
# The distance in rank (microseconds) between two runs of a key: enough for every other key to take a turn in between.
FAIR_STEP = 3_600_000_000
