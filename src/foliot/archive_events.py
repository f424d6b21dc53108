"""Events of the archive."""

from __future__ import annotations

from dataclasses import dataclass

from foliot.events import Event


@dataclass(frozen=True, slots=True)
class RowsArchived(Event):
    """Rows of history are in the archive."""

    kind: str
    rows: int
    objects: int


@dataclass(frozen=True, slots=True)
class DayArchived(Event):
    """The archive has confirmed a day of history, which can now be dropped."""

    kind: str
    day: str
    rows: int


@dataclass(frozen=True, slots=True)
class ArchiveFailed(Event):
    """The archive does not answer. History stays in the database."""

    location: str
    error: str


@dataclass(frozen=True, slots=True)
class DaysAwaitArchive(Event):
    """Days of history are older than their retention, and are kept because they are not archived."""

    days: int
    first: str
