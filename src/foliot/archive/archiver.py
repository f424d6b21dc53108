"""Writes history into the archive, soon after it is made and long before its days are dropped.

One process at a time archives. It follows each kind of rows in the order of their time, in slices of some minutes: as
soon as no further row can appear in a slice, its rows are encoded and uploaded, one object for each namespace. Then one
statement records the objects and the place behind them. At the end of a day the archive must list every object with its
size, and return the day's manifest as it was written. Only then is the day confirmed, and may be dropped.

The name of an object and its rows follow from the place at which it begins. So after a crash, or when two processes
archive for a moment, the same objects are written again and nothing is archived twice. While the archive does not
answer, the place stays, rows stay in the database, and memory holds at most one part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from foliot.archive.destination import ArchiveUnavailable, Destination
from foliot.archive.helper import Helper
from foliot.archive.part import Part
from foliot.archive_events import ArchiveFailed, DayArchived, RowsArchived
from foliot.clock import Clock
from foliot.config import Config
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.archive import (
    DAY,
    FIRST_ID,
    KINDS,
    TABLE_OF_KIND,
    Kind,
    Manifest,
    Place,
    checked,
    day_start,
    directory_of,
    manifest_name,
    slice_end,
    slice_start,
)
from foliot.model.ids import new_id
from foliot.service import Service
from foliot.store.lost_outputs import SettledRows
from foliot.store.store import Store

T = TypeVar("T")
LOOK_SECONDS = 10.0
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 1.0, 60.0
LEASE_SECONDS = 60.0
# Longer than any transaction of Foliot, so that none can still add rows to a slice.
HOLD_SECONDS = 90.0
# A page that is full is followed by pages of one minute, so that no statement sorts a long slice again and again.
NARROW = timedelta(minutes=1)
SLICES_IN_A_TURN = 12


class LeaseLost(Exception):
    """Another process archives now."""


class Archiver(Service):
    def __init__(
        self, *, store: Store, config: Config, destination: Destination, clock: Clock, events: EventBus
    ) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._destination = destination
        self._format = config.archive_format
        self._minutes = config.archive_minutes
        self._seconds = config.archive_timeout_seconds
        self._rows = SettledRows(store.archives, store.logs, config.output_max_bytes)
        self._owner = new_id()
        self._helper = Helper(stopping=self._stopping)
        self._starts: dict[Kind, datetime] = {}
        self._failures = 0

    async def run_once(self) -> float:
        places = await self._take()
        if not places:
            return LOOK_SECONDS
        is_behind = False
        try:
            for kind in KINDS:
                is_behind |= await self._archive(kind, places[kind])
        except LeaseLost:
            return LOOK_SECONDS
        except ArchiveUnavailable as error:
            return await self._failed(error)
        if self._failures:
            self._failures = 0
            await self._store.archives.note_archive_success(self._owner)
        return 0.0 if is_behind else LOOK_SECONDS

    async def on_stop(self) -> None:
        # The next node need not wait for the lease.
        with suppress(StoreUnavailable):
            await self._store.archives.release_archives(self._owner)

    async def _take(self) -> Mapping[Kind, Place]:
        if not self._starts:
            days = await self._store.partitions.first_days()
            now = await self._store.archives.horizon("runs", 0)
            self._starts = {kind: day_start(days.get(TABLE_OF_KIND[kind], now.date())) for kind in KINDS}
        return await self._store.archives.take_archives(
            self._starts, self._destination.location, self._owner, LEASE_SECONDS
        )

    async def _failed(self, error: ArchiveUnavailable) -> float:
        self._failures += 1
        if self.stopping:
            return 0.0
        self.events.emit(ArchiveFailed(self._destination.location, error.detail))
        await self._store.archives.note_archive_failure(self._owner, error.detail)
        return min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 10), LAST_PAUSE_SECONDS)

    async def _archive(self, kind: Kind, place: Place) -> bool:
        """Archives the slices of a kind that have ended. Returns True if more of them remain."""
        horizon = await self._store.archives.horizon(kind, HOLD_SECONDS)
        for _ in range(SLICES_IN_A_TURN):
            end = slice_end(place[0], self._minutes)
            if end > horizon or self.stopping:
                return False
            place = await self._archive_part(kind, place, end, horizon)
        return True

    async def _archive_part(self, kind: Kind, place: Place, end: datetime, horizon: datetime) -> Place:
        """Archives the rows from a place to the end of its slice, or as many as fit into a part. Returns the next
        place."""
        part, day = Part(kind, self._format, place), place[0].date()
        after, width = place, end - place[0]
        while not part.is_full and after[0] < end:
            until = min(end, after[0] + width)
            rows = await self._rows.list_rows(kind, after, until)
            if not rows:
                after = until, FIRST_ID
                continue
            await self._add(part, rows)
            after, width = part.end, NARROW
        objects = await self._blocking(part.objects)
        for one, content in objects:
            name = directory_of(kind, day) + one.name
            await self._blocking(lambda name=name, content=content: self._destination.put(name, content))  # type: ignore[misc]
        is_over = not part.is_full
        if is_over and not objects:
            end = await self._next_slice(kind, end, day, horizon)
        next_place = (end, FIRST_ID) if is_over and end.date() == day else part.end
        if objects or next_place != place:
            await self._fenced(
                self._store.archives.advance_archive(kind, self._owner, next_place, day, [one for one, _ in objects])
            )
        if objects:
            self.events.emit(RowsArchived(kind, sum(one.rows for one, _ in objects), len(objects)))
        if not is_over or end.date() == day:
            return next_place
        await self._confirm(kind, day)
        return end, FIRST_ID

    async def _next_slice(self, kind: Kind, end: datetime, day: date, horizon: datetime) -> datetime:
        """The beginning of the next slice of the day that has rows; otherwise the end of the day, or the horizon."""
        last = min(day_start(day) + DAY, slice_start(horizon, self._minutes))
        rows = await self._store.archives.list_rows(kind, (end, FIRST_ID), last) if end < last else []
        return slice_start(rows[0]["at"], self._minutes) if rows else max(end, last)

    async def _add(self, part: Part, rows: Sequence[Mapping[str, Any]]) -> None:
        taken = part.take(rows)
        if taken:
            await self._blocking(lambda: part.encode(taken))

    async def _confirm(self, kind: Kind, day: date) -> None:
        """Makes sure that the archive has the day, and lets the database know."""
        objects = await self._store.archives.list_archived_objects(kind, day)
        if objects:
            found = await self._blocking(lambda: self._destination.sizes(directory_of(kind, day)))
            for one in objects:
                if found.get(one.name) != one.bytes:
                    # Archived again from its beginning: the objects keep their names.
                    await self._store.archives.reopen_archive(kind, day)
                    held = "is missing" if one.name not in found else f"has {found[one.name]} bytes, not {one.bytes}"
                    raise ArchiveUnavailable(
                        f"{self._destination.location}: {directory_of(kind, day)}{one.name} {held}"
                    )
            await self._write_manifest(Manifest(kind, day, objects))
        await self._fenced(self._store.archives.confirm_archived_day(kind, self._owner, day))
        self.events.emit(DayArchived(kind, str(day), sum(one.rows for one in objects)))

    async def _write_manifest(self, manifest: Manifest) -> None:
        name, content = manifest_name(manifest.kind, manifest.day), msgspec.json.encode(manifest)
        await self._blocking(lambda: self._destination.put(name, content))
        stored = await self._blocking(lambda: self._destination.get(name))
        try:
            read = checked(msgspec.json.decode(stored or b"", type=Manifest), manifest.kind, manifest.day)
        except (ValueError, msgspec.DecodeError):
            read = None
        if read != manifest:
            raise ArchiveUnavailable(f"{self._destination.location}: {name} does not read as it was written")

    async def _fenced(self, write: Awaitable[bool]) -> None:
        if not await write:
            raise LeaseLost

    async def _blocking(self, work: Callable[[], T]) -> T:
        return await self._helper.run(work, self._seconds * 2)
