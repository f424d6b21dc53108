"""Reads state changes of runs from the database, once for all followers in this process, and only while there are some.

Runs pay nothing for it, because the feed polls. It reports every finished run exactly once, in the order of finishing:
it reads history up to an instant before which no more runs can appear (`ending_horizon`). Other changes are sampled
twice a second: of a run that starts and ends between two polls, only the end is reported.

There is no background task: the first follower that comes after the interval polls for all of them. Events are kept in
one line that each follower reads at its own pace. A follower that falls behind the start of the line is disconnected,
and resumes with the id of its last event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

import msgspec

from foliot.api.openapi.schemas import run_name
from foliot.api.requests.parameters import cursor_text
from foliot.clock import Clock
from foliot.model.namespace import Namespace, bare
from foliot.model.states import TERMINAL, RunState, status_of
from foliot.store.run_events import RunChange
from foliot.store.store import Store

LOOK_SECONDS = 0.5
# Longer than the statement timeout, so a transaction that is ending a run has finished by then.
HOLD_SECONDS = 10.0
ENDINGS = 1000
RUNNING_MAX = 5000
KEPT = 20_000
FIRST_ID = UUID(int=0)

Place = tuple[datetime, UUID]


@dataclass(frozen=True, slots=True)
class FeedEvent:
    change: RunChange
    text: bytes


@dataclass(frozen=True, slots=True)
class Filter:
    namespace: Namespace
    states: frozenset[str] | None = None
    """States as in `RunFilter`."""
    queue: str | None = None
    task: str | None = None
    job_id: UUID | None = None
    tag: str | None = None

    def takes(self, change: RunChange) -> bool:
        return (
            self.namespace.owns(change.queue)
            and (self.queue is None or change.queue == self.queue)
            and (self.task is None or change.task == self.task)
            and (self.job_id is None or change.job_id == self.job_id)
            and (self.tag is None or self.tag in change.tags)
            and (self.states is None or _state_word(change) in self.states)
        )


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A state change of a run."""

    id: UUID
    name: str | None
    task: str
    queue: str
    status: str
    state: str
    reason: str | None
    attempt: int
    at: datetime
    job_id: UUID | None
    parent_id: UUID | None
    step: str | None
    tags: list[str]
    error: Any


class EventFeed:
    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._number = 0
        self._lock = asyncio.Lock()
        self._looked_at = 0.0
        self._is_behind = False
        self._place: Place | None = None
        self._running: Mapping[UUID, RunChange] = {}
        self._line: deque[FeedEvent] = deque(maxlen=KEPT)
        self._counted = 0
        """The number of all events that were ever appended."""

    def enter(self) -> None:
        self._number += 1

    def leave(self) -> None:
        self._number -= 1
        if self._number == 0:
            self._place = None
            self._line.clear()

    async def join(self) -> tuple[Place, int]:
        """The place of the last reported ending, and the position at which the line continues after it."""
        async with self._lock:
            if self._place is None:
                self._place = (await self._store.run_events.ending_horizon(HOLD_SECONDS), FIRST_ID)
                self._running = {change.id: change for change in await self._store.run_events.list_running(RUNNING_MAX)}
                self._looked_at = self._clock.monotonic()
            return self._place, self._counted

    def after(self, position: int) -> list[FeedEvent] | None:
        """The events after a position in the line; None if some of them have been dropped."""
        known_from = self._counted - len(self._line)
        return None if position < known_from else list(islice(self._line, position - known_from, None))

    async def look(self) -> None:
        """Polls for new events, unless another follower has just done so."""
        async with self._lock:
            now = self._clock.monotonic()
            if self._place is None or (now - self._looked_at < LOOK_SECONDS and not self._is_behind):
                return
            self._looked_at = now
            running = {change.id: change for change in await self._store.run_events.list_running(RUNNING_MAX)}
            horizon = await self._store.run_events.ending_horizon(HOLD_SECONDS)
            endings = await self._store.run_events.list_endings(self._place, horizon, ENDINGS)
            gone = [run_id for run_id in self._running if run_id not in running]
            put_back = (
                [one for one in await self._store.run_events.find_changes(gone) if one.state not in TERMINAL]
                if gone
                else []
            )
            started = [
                one
                for one in running.values()
                if one.id not in self._running or self._running[one.id].token != one.token
            ]
            self._running, self._is_behind = running, len(endings) == ENDINGS
            last = endings[-1] if self._is_behind else None
            self._place = (last.at, last.id) if last else max(self._place, (horizon, FIRST_ID))
            for change in (*put_back, *started, *endings):
                self._line.append(FeedEvent(change, event_text(change, place_id(change))))
                self._counted += 1


def place_id(change: RunChange) -> str:
    """The id of an event. Only endings have one: they are ordered, so a stream can resume after them."""
    return cursor_text(change.at, change.id) if change.state in TERMINAL else ""


def event_text(change: RunChange, event_id: str) -> bytes:
    head = f"event: run\nid: {event_id}\n" if event_id else "event: run\n"
    return head.encode() + b"data: " + msgspec.json.encode(document(change)) + b"\n\n"


def document(change: RunChange) -> RunEvent:
    return RunEvent(
        id=change.id, name=run_name(change.name, change.job_id), task=bare(change.task), queue=bare(change.queue),
        status=status_of(change.state, change.attempt), state=change.state, reason=change.reason,
        attempt=change.attempt,
        at=change.at, job_id=change.job_id, parent_id=change.parent_id, step=change.step, tags=change.tags,
        error=change.error,
    )  # fmt: skip


def _state_word(change: RunChange) -> str:
    is_tried = change.attempt > 0 and change.state in (RunState.READY, RunState.SCHEDULED)
    return f"{change.state}+" if is_tried else str(change.state)
