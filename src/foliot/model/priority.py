"""The order in which ready runs are taken: one static number, lower first.

    rank = due instant - priority x aging        (in microseconds)

Ordering by it *is* priority aging: a run gains one level of priority for every `aging` it has waited, with no update
ever, and nothing starves. A very large aging makes priority strict. The sum itself is done in SQL, where the due
instant is decided.
"""

from __future__ import annotations

PRIORITY_MIN = -1000
PRIORITY_MAX = 1000


LEVELS = ("critical", "high", "normal", "low")
"""The queues or topics of a broker that keeps no order of its own, most urgent first."""


def level_of(priority: int) -> str:
    """The level that a priority belongs to."""
    if priority >= 10:
        return "critical"
    if priority > 0:
        return "high"
    return "normal" if priority == 0 else "low"


def aging_microseconds(aging_seconds: float) -> int:
    return int(aging_seconds * 1_000_000)
