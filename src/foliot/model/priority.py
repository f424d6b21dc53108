"""The order in which ready runs are taken: one static number, lower first.

    rank = due instant - priority x aging        (in microseconds)

Ordering by it *is* priority aging: a run gains one level of priority for every `aging` it has waited, with no update
ever, and nothing starves. A very large aging makes priority strict. The sum itself is done in SQL, where the due
instant is decided.
"""

from __future__ import annotations

PRIORITY_MIN = -1000
PRIORITY_MAX = 1000


def aging_microseconds(aging_seconds: float) -> int:
    return int(aging_seconds * 1_000_000)
