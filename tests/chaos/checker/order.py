"""Invariant of the claim order: runs are claimed in the order of their ranks."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import groupby

from tests.chaos.checker.attempts import is_claim
from tests.chaos.checker.history import SECOND, Change, History
from tests.chaos.checker.invariant import invariant

SEEN = 3 * SECOND
"""A run that has been ready for this long is visible to every new claim."""


class Line:
    """The ready runs of one queue."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._heap: list[tuple[int, int, str]] = []

    def enter(self, run_id: str, rank: int, at: int) -> None:
        if run_id not in self._since:
            self._since[run_id] = at
            heappush(self._heap, (rank, at, run_id))

    def leave(self, run_id: str) -> None:
        self._since.pop(run_id, None)

    def first(self) -> tuple[int, int, str] | None:
        """Its rank, since when it is ready, and its id."""
        while self._heap and self._since.get(self._heap[0][2]) != self._heap[0][1]:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


@invariant(27)
def in_order_of_rank(history: History) -> Iterator[str]:
    """No run is claimed before a higher-ranked one that has been ready for seconds, while no fault is in the way."""
    if history.settings.has_broker:
        # A broker may lose hints, and a run is announced again after a while.
        return
    aging = int(history.settings.aging_seconds * SECOND)
    lines: dict[str, Line] = {}
    for _, together in groupby(history.changes, key=lambda change: change.transaction):
        claims: dict[str, tuple[int, Change]] = {}
        for change in together:
            run = history.by_id.get(change.run_id)
            if run is None:
                continue
            line, rank = lines.setdefault(run.queue, Line()), change.due_at - run.priority * aging
            if change.after == "ready" and not change.is_cancelled:
                # Released runs and ticks have a rank of their own time: only submitted runs are compared.
                if change.kind == "insert" and not run.parent_id and not run.job_id:
                    line.enter(change.run_id, rank, change.at)
            else:
                line.leave(change.run_id)
            if is_claim(change) and rank > claims.get(run.queue, (rank - 1, change))[0]:
                claims[run.queue] = rank, change
        for queue, (rank, claim) in claims.items():
            first = lines[queue].first()
            if (
                first
                and first[0] < rank - SECOND
                and first[1] < claim.began_at - SEEN
                and _is_left(history, first[2], claim)
            ):
                yield (
                    f"run {claim.run_id} was claimed at {claim.at}, and {first[2]}, ready since {first[1]}, ranks "
                    f"before it"
                )


def _is_left(history: History, run_id: str, claim: Change) -> bool:
    """Whether no claim was taking it at that moment, and nothing kept a worker from it."""
    taken = next((change for change in history.changes_of[run_id] if change.seq > claim.seq), None)
    is_being_taken = taken is not None and taken.began_at < claim.at + SECOND
    return not is_being_taken and history.disturbed_seconds(claim.at - 10 * SECOND, claim.at) == 0
