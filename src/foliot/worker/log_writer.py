"""Shows what attempts write, and how far they say they are, while they run: new output and progress twice a second, in
one statement.

An attempt that is silent, or that has ended before this service has seen it twice, costs nothing. Parts are for looking
at a run under way: what counts is the output kept at its end, and once that is stored the parts are deleted. Of an
attempt whose worker dies they are all there is, and the scheduler's reaper makes its output of them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import UUID

import msgspec

from foliot.clock import Clock
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.outcome import storable
from foliot.sdk.context import Progress
from foliot.service import Service
from foliot.store.logs import PART_MAX_BYTES, LogPart, ProgressNote
from foliot.store.store import Store
from foliot.worker.attempts import Attempts, RunningAttempt

INTERVAL_SECONDS = 0.5
BATCH_MAX_BYTES = 4_194_304
# Turns after the end of an attempt until its parts go: its outcome is stored by then, and who follows it has read on.
TURNS_KEPT = 6

Key = tuple[UUID, int]


class LogWriter(Service):
    def __init__(self, *, store: Store, attempts: Attempts, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self.worker_id: UUID
        self._store = store
        self._attempts = attempts
        self._seen: set[Key] = set()
        self._progress: dict[Key, Progress] = {}
        self._parts: list[LogPart] = []
        self._notes: list[ProgressNote] = []
        self._written: dict[Key, int] = {}
        """Attempts with parts in the store, and for how many turns they have been over."""
        self._is_asleep = False
        attempts.on_busy = self._wake_soon

    async def run_once(self) -> float | None:
        under_way = self._attempts.under_way
        # What could not be written goes first, as it was; until then nothing is added to it.
        if not self._parts and not self._notes:
            self._gather(under_way)
        if self._parts or self._notes:
            await self._store.logs.write_logs(self.worker_id, self._parts, self._notes)
            self._written.update({(part.run_id, part.token): 0 for part in self._parts})
            self._parts, self._notes = [], []
        if self._written:
            await self._tidy(under_way)
        # An idle worker has nothing to show. Two wake-ups a second would be most of its cost.
        self._is_asleep = not under_way and not self._written
        return None if self._is_asleep else INTERVAL_SECONDS

    def _wake_soon(self) -> None:
        """Not at once, because most attempts end before they would be seen twice."""
        if self._is_asleep:
            self._is_asleep = False
            asyncio.get_running_loop().call_later(INTERVAL_SECONDS / 2, self.wake)

    async def on_stop(self) -> None:
        if self._written:
            with suppress(StoreUnavailable):
                await self._store.logs.delete_logs(list(self._written))

    def _gather(self, under_way: dict[Key, RunningAttempt]) -> None:
        size = 0
        for key, running in under_way.items():
            if key not in self._seen:
                continue
            if running.live is not None and running.live.is_waiting and size < BATCH_MAX_BYTES:
                parts = [LogPart(*key, position, chunk) for position, chunk in running.live.take(PART_MAX_BYTES)]
                size += sum(len(part.chunk) for part in parts)
                self._parts += parts
            made = running.context.progress_made
            if made is not None and made is not self._progress.get(key):
                self._progress[key] = made
                self._notes.append(ProgressNote(*key, encoded(made, running.claim.attempt)))
        self._seen = set(under_way)
        for key in [key for key in self._progress if key not in under_way]:
            del self._progress[key]

    async def _tidy(self, under_way: dict[Key, RunningAttempt]) -> None:
        over = []
        for key in [key for key in self._written if key not in under_way]:
            self._written[key] += 1
            if self._written[key] > TURNS_KEPT:
                over.append(key)
        if over:
            await self._store.logs.delete_logs(over)
            for key in over:
                del self._written[key]


def encoded(progress: Progress, attempt: int) -> str:
    return msgspec.json.encode(
        {"share": progress.share, "message": storable(progress.message), "attempt": attempt}
    ).decode()
