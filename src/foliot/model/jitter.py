"""Jitter: spreads work that would otherwise start at the same instant.

A tick's jitter is a hash, so that every node computes the same fire time. A retry's jitter is random.
"""

from __future__ import annotations

import hashlib
from uuid import UUID


def tick_jitter(jitter_seconds: int, job_id: UUID, tick: int) -> int:
    """The delay of a tick in whole seconds: 0 to `jitter_seconds`, always the same for a job and a tick."""
    if not jitter_seconds:
        return 0
    digest = hashlib.sha256(job_id.bytes + tick.to_bytes(8, "big", signed=True)).digest()
    return int.from_bytes(digest[:8], "big") % (jitter_seconds + 1)


def with_jitter(wait_seconds: float, share: float, chance: float) -> float:
    """The wait plus up to `share` of it. `chance` is a random number in [0, 1)."""
    return wait_seconds * (1 + share * chance)
