"""Remembers which hints were published, and decides which of the ready runs need one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foliot.model.run import StartableRun

FIRST_REPEAT_SECONDS = 1.0
LAST_REPEAT_SECONDS = 8.0
"""A run that nobody claims is announced again, less often each time."""


class PublishedHints:
    """Remembers no more runs than were read last, whatever happened before."""

    def __init__(self) -> None:
        self._published: dict[str, dict[tuple[UUID, int], tuple[float, float]]] = {}
        """By queue, run and rank: when to announce it again, and how long to wait after that. A retried run has
        another rank."""

    def due(self, queue: str, runs: Sequence[StartableRun], now: float) -> list[StartableRun]:
        """The ready runs of a queue that are to be announced now."""
        before, after, found = self._published.get(queue, {}), {}, []
        for run in runs:
            again_at, wait = before.get((run.id, run.rank), (now, FIRST_REPEAT_SECONDS))
            if now >= again_at:
                found.append(run)
                again_at, wait = now + wait, min(2 * wait, LAST_REPEAT_SECONDS)
            after[run.id, run.rank] = again_at, wait
        if after:
            self._published[queue] = after
        else:
            self._published.pop(queue, None)
        return found

    def forget(self) -> None:
        """The broker may have lost all of them."""
        self._published.clear()
