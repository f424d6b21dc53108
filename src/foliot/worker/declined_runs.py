"""The runs that this worker left to workers with another version of their task.

For a while the worker does not claim them again. Otherwise a worker that is quicker than the others would claim and
decline the same run again and again, while the worker that could run it comes too late each time.
"""

from __future__ import annotations

from uuid import UUID

from foliot.clock import Clock
from foliot.model.worker_protocol import DECLINED_MAX

KEPT_SECONDS = 30.0
"""After that this worker claims the run again, in case no other version is left. It then fails with the reason."""
KEPT_MAX = DECLINED_MAX
"""A claim sends all of them. The oldest are forgotten first."""


class DeclinedRuns:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[UUID, float] = {}

    def add(self, run_id: UUID) -> None:
        self._until.pop(run_id, None)
        self._until[run_id] = self._clock.monotonic() + KEPT_SECONDS
        if len(self._until) > KEPT_MAX:
            del self._until[next(iter(self._until))]

    def ids(self) -> list[UUID]:
        if not self._until:
            return []
        now = self._clock.monotonic()
        # The oldest come first.
        for run_id, until in list(self._until.items()):
            if until > now:
                break
            del self._until[run_id]
        return list(self._until)
