"""Stores the output and progress of running attempts twice a second, in one statement.

An attempt that writes nothing, or that ends before this service has seen it twice, costs nothing. The stored parts let
users follow a running attempt. They are deleted once the complete output is stored at its end. If the worker dies, the
scheduler's reaper assembles the output from the parts.
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
from foliot.worker.attempts import Attempts
from foliot.worker.backend import WorkerStore
from foliot.worker.identity import WorkerIdentity
from foliot.worker.running_attempt import RunningAttempt

INTERVAL_SECONDS = 0.5
BATCH_MAX_BYTES = 4_194_304
# Turns between the end of an attempt and the deletion of its parts. By then its outcome is stored and followers have
# read the last part.
TURNS_KEPT = 6

Key = tuple[UUID, int]


class LogWriter(Service):
    def __init__(
        self, *, store: WorkerStore, identity: WorkerIdentity, attempts: Attempts, clock: Clock, events: EventBus
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._identity = identity
        self._attempts = attempts
        self._seen: set[Key] = set()
        self._progress: dict[Key, Progress] = {}
        self._parts: list[LogPart] = []
        self._notes: list[ProgressNote] = []
        self._written: dict[Key, int] = {}
        """Attempts with stored parts, and the number of turns since each ended."""
        self._is_asleep = False

    async def run_once(self) -> float | None:
        under_way = self._attempts.under_way
        # A batch that could not be written is retried unchanged before anything new is gathered.
        if not self._parts and not self._notes:
            self._gather(under_way)
        if self._parts or self._notes:
            await self._store.logs.write_logs(self._identity.id, self._parts, self._notes)
            self._written.update({(part.run_id, part.token): 0 for part in self._parts})
            self._parts, self._notes = [], []
        if self._written:
            await self._delete_old_parts(under_way)
        # Two wake-ups a second would be most of the cost of an idle worker.
        self._is_asleep = not under_way and not self._written
        return None if self._is_asleep else INTERVAL_SECONDS

    def wake_soon(self) -> None:
        """Wakes the service after a moment: most attempts end before they are seen twice."""
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
                parts = [LogPart(*key, position, chunk) for position, chunk in running.take_live(PART_MAX_BYTES)]
                size += sum(len(part.chunk) for part in parts)
                self._parts += parts
            made = running.context.progress_made
            if made is not None and made is not self._progress.get(key):
                self._progress[key] = made
                self._notes.append(ProgressNote(*key, encoded(made, running.claim.attempt)))
        self._seen = set(under_way)
        for key in [key for key in self._progress if key not in under_way]:
            del self._progress[key]

    async def _delete_old_parts(self, under_way: dict[Key, RunningAttempt]) -> None:
        expired = []
        for key in [key for key in self._written if key not in under_way]:
            self._written[key] += 1
            if self._written[key] > TURNS_KEPT:
                expired.append(key)
        if expired:
            await self._store.logs.delete_logs(expired)
            for key in expired:
                del self._written[key]


def encoded(progress: Progress, attempt: int) -> str:
    return msgspec.json.encode(
        {"share": progress.share, "message": storable(progress.message), "attempt": attempt}
    ).decode()
