"""For brokers that keep no order of their own: one queue for each level of priority, and a local buffer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from uuid import UUID

from foliot.model.priority import LEVELS, level_of
from foliot.model.run import StartableRun

UNSAFE = re.compile(r"[^A-Za-z0-9-]")


def safe_name(queue: str, longest: int = 1000) -> str:
    """The name of a queue in letters, digits, hyphens and underscores. Different queues have different names. A name
    that would be too long ends with a digest."""
    name = UNSAFE.sub(lambda found: "".join(f"_{byte:02x}" for byte in found[0].encode()), queue)
    if len(name) <= longest:
        return name
    # No other name has two underscores in a row.
    return f"{name[: longest - 18].rstrip('_')}__{sha256(queue.encode()).hexdigest()[:16]}"


def by_level(runs: Sequence[StartableRun]) -> dict[str, list[StartableRun]]:
    """The runs of each level, for the levels that have any."""
    found = {level: [run for run in runs if level_of(run.priority) == level] for level in LEVELS}
    return {level: some for level, some in found.items() if some}


class Buffer:
    """Hints that have arrived and were not requested yet."""

    def __init__(self) -> None:
        self._ids: dict[str, list[UUID]] = {level: [] for level in LEVELS}

    def __len__(self) -> int:
        return sum(map(len, self._ids.values()))

    def add(self, level: str, ids: Iterable[UUID]) -> None:
        self._ids[level].extend(ids)

    def take(self, limit: int) -> list[UUID]:
        """Takes up to `limit` of them, the most urgent first."""
        taken: list[UUID] = []
        for ids in self._ids.values():
            room = limit - len(taken)
            taken += ids[:room]
            del ids[:room]
        return taken
