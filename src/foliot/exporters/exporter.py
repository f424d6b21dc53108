"""The base class of exporters: one process at a time sends every ending of a run, in the order of finishing.

An exporter follows `history` from a place that is stored in the database, so runs pay nothing for it, and another node
continues after a crash. `export` is called before the place advances: an ending is sent at least once.

After each piece of a backlog an exporter pauses for a multiple of the time that the piece took, so that the processor
belongs to jobs. The further it is behind, the shorter it pauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from foliot.clock import Clock
from foliot.errors import StoreUnavailable
from foliot.events import EventBus
from foliot.model.ids import new_id
from foliot.service import Service
from foliot.store.exports import FIRST_ID, Place
from foliot.store.store import Store

LOOK_SECONDS = 1.0
LEASE_SECONDS = 10.0
# Longer than the statement timeout: a transaction that is ending a run has finished by then.
HOLD_SECONDS = 10.0
ENDINGS = 2_000
PAUSES_PER_WORK = 9.0
# A far end that answers slowly makes the work long, and takes no processor.
PAUSE_MAX_SECONDS = 0.5
# So far behind, an exporter pauses half as long; twice as far, a third.
FAR_BEHIND = timedelta(minutes=1)


class LeaseLost(Exception):
    """Another process exports now."""


class Placed(Protocol):
    @property
    def place(self) -> Place: ...


E = TypeVar("E", bound=Placed)


class Exporter(Service, Generic[E]):
    export_name: str
    lease_seconds = LEASE_SECONDS

    def __init__(self, *, store: Store, clock: Clock, events: EventBus) -> None:
        super().__init__(clock=clock, events=events)
        self._store = store
        self._owner = new_id()

    async def export(self, endings: Sequence[E]) -> None:
        """Sends endings, which may be none. Called about once a second by the process that holds the export."""
        raise NotImplementedError  # pragma: no cover

    async def list_endings(self, after: Place, until: datetime, limit: int) -> Sequence[E]:
        """Reads endings in order, up to a time."""
        raise NotImplementedError  # pragma: no cover

    async def horizon(self) -> datetime:
        """A time before which no further ending will appear."""
        return await self._store.run_events.ending_horizon(HOLD_SECONDS)

    def window(self, place: Place, horizon: datetime) -> datetime:
        """The time up to which one look reads."""
        return horizon

    def batch_size(self) -> int:
        """The most endings of one look."""
        return ENDINGS

    def is_full(self, endings: Sequence[E], limit: int) -> bool:
        """Whether more endings may follow within the same window."""
        return len(endings) == limit

    async def renew(self) -> None:
        """For exports that take long. Raises `LeaseLost` if another process exports now."""
        exports, seconds = self._store.exports, self.lease_seconds
        if await exports.take_export(self.export_name, self._owner, seconds, self._horizon) is None:
            raise LeaseLost(f"another process holds the export {self.export_name}")

    def pause(self, began_at: float, behind: timedelta) -> float:
        """The seconds until the next piece of a backlog, whose last piece has begun at this time."""
        share = PAUSES_PER_WORK / (1 + max(behind, timedelta()) / FAR_BEHIND)
        return min((self.clock.monotonic() - began_at) * share, PAUSE_MAX_SECONDS)

    async def run_once(self) -> float:
        began_at = self.clock.monotonic()
        self._horizon = horizon = await self.horizon()
        exports = self._store.exports
        place = await exports.take_export(self.export_name, self._owner, self.lease_seconds, horizon)
        if place is None:
            return LOOK_SECONDS
        limit = self.batch_size()
        until = self.window(place, horizon)
        endings = await self.list_endings(place, until, limit)
        await self.export(endings)
        is_full = self.is_full(endings, limit)
        reached = endings[-1].place if is_full else max(place, (until, FIRST_ID))
        await exports.advance_export(self.export_name, self._owner, reached)
        return self.pause(began_at, horizon - reached[0]) if is_full or until < horizon else LOOK_SECONDS

    async def on_stop(self) -> None:
        # The next node need not wait for the lease.
        with suppress(StoreUnavailable):
            await self._store.exports.release_export(self.export_name, self._owner)
