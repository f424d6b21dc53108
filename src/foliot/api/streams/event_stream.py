"""Streams state changes of runs as server-sent events: of all runs that match a filter, or of one run until it ends.

    event: run    id: <instant>.<run>    data: {"id": ..., "status": "completed", "state": "succeeded", ...}

The id is a place in the order of finishing. A client that sends it back as Last-Event-ID resumes there, on any server,
with every run that has finished since.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from uuid import UUID

from foliot.api.streams.event_feed import EventFeed, Filter, Place, event_text, place_id
from foliot.clock import Clock
from foliot.model.states import TERMINAL
from foliot.store.store import Store

WAIT_SECONDS = 0.25
HEARTBEAT_SECONDS = 2.0
HEARTBEAT = b": still here\n\n"
PAGE = 1000
# History is read in slices, so that the cost of a page does not depend on how far back it begins.
SLICE = timedelta(seconds=10)
LONG_SLICE = timedelta(minutes=5)
MOMENT = timedelta(microseconds=1)


class EventFollower:
    """The state of both kinds of streams: whether to continue, and when to send a heartbeat."""

    def __init__(
        self,
        *,
        store: Store,
        feed: EventFeed,
        clock: Clock,
        stopping: asyncio.Event,
        is_gone: Callable[[], Awaitable[bool]],
    ) -> None:
        self.store = store
        self.feed = feed
        self._clock = clock
        self._stopping = stopping
        self._is_gone = is_gone
        self._silent_since = clock.monotonic()

    async def is_active(self) -> bool:
        return not self._stopping.is_set() and not await self._is_gone()

    async def pause(self) -> bytes:
        """Waits a moment. Returns a heartbeat if nothing has been sent for a while."""
        await self._clock.wait(self._stopping, WAIT_SECONDS)
        if self._clock.monotonic() - self._silent_since < HEARTBEAT_SECONDS:
            return b""
        self.note_sent()
        return HEARTBEAT

    def note_sent(self) -> None:
        self._silent_since = self._clock.monotonic()


async def counted(feed: EventFeed, events: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    feed.enter()
    try:
        # Sends the head of the response before the first event.
        yield b": here\n\n"
        async for event in events:
            yield event
    finally:
        feed.leave()


async def all_events(
    following: EventFollower, wanted: Filter, since: Place | None, *, is_followed: bool
) -> AsyncIterator[bytes]:
    """The runs that finished after `since`, if given; then, if `is_followed`, each new event."""
    place, position = await following.feed.join()
    if since is not None and since < place:
        async for event in _past(following, wanted, since, place):
            yield event
    while is_followed and await following.is_active():
        found = following.feed.after(position)
        if found is None:
            # The follower is too slow. It reconnects with the id of its last event and reads the rest from history.
            return
        position += len(found)
        if text := b"".join(event.text for event in found if wanted.takes(event.change)):
            following.note_sent()
            yield text
        if not found:
            await following.feed.look()
            if not following.feed.after(position) and (heartbeat := await following.pause()):
                yield heartbeat


async def _past(following: EventFollower, wanted: Filter, since: Place, place: Place) -> AsyncIterator[bytes]:
    end = place[0] + MOMENT
    slice_ = SLICE
    while since < place and await following.is_active():
        until: datetime = min(since[0] + slice_, end)
        found = await following.store.run_events.list_endings(since, until, PAGE)
        if text := b"".join(
            event_text(one, place_id(one)) for one in found if (one.at, one.id) <= place and wanted.takes(one)
        ):
            yield text
        # Larger slices are enough where no runs ended.
        slice_ = min(slice_ * 2, LONG_SLICE) if not found else SLICE
        since = (found[-1].at, found[-1].id) if len(found) == PAGE else max(since, (until, UUID(int=0)))


async def run_events(following: EventFollower, run_id: UUID, last_id: str) -> AsyncIterator[bytes]:
    """Each observed state of the run, until it has ended."""
    while await following.is_active():
        found = await following.store.run_events.find_changes([run_id])
        if not found:
            return
        (change,) = found
        event_id = f"{change.token}.{change.state}"
        if event_id != last_id:
            following.note_sent()
            last_id = event_id
            yield event_text(change, event_id)
        if change.state in TERMINAL:
            return
        if heartbeat := await following.pause():
            yield heartbeat
