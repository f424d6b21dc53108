"""Reads the archive: its days, and the objects of some days as local files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec

from foliot.archive.destination import ArchiveUnavailable, Destination
from foliot.archive.directory import Directory
from foliot.model.archive import OBJECT, Kind, Manifest, checked, directory_of, manifest_name

DAY_NAME = "day="


@dataclass(frozen=True, slots=True)
class ArchivedDay:
    kind: Kind
    day: date
    objects: int
    bytes: int
    rows: int | None
    """None while the day is not complete: its list is written last."""


class ArchiveReader:
    def __init__(self, destination: Destination) -> None:
        self._destination = destination

    def days(self, kind: Kind, since: date, until: date) -> Iterator[ArchivedDay]:
        for day in self._days(kind, since, until):
            sizes = self._objects(kind, day)
            content = self._destination.get(manifest_name(kind, day))
            rows = None if content is None else sum(one.rows for one in self._manifest(content, kind, day).objects)
            yield ArchivedDay(kind, day, len(sizes), sum(sizes.values()), rows)

    def fetch(self, kind: Kind, since: date, until: date, directory: Path) -> list[Path]:
        """The objects of the days as files: those of a directory where they are, others downloaded."""
        found = []
        for day in self._days(kind, since, until):
            for name in self._objects(kind, day):
                whole = directory_of(kind, day) + name
                found.append(self._local(whole) or self._download(whole, directory / whole))
        return found

    def _days(self, kind: Kind, since: date, until: date) -> Sequence[date]:
        names = [name.removeprefix(DAY_NAME) for name in self._destination.directories(f"{kind}/")]
        days = []
        for name in names:
            try:
                days.append(date.fromisoformat(name))
            except ValueError:
                # Not of Foliot: the bucket may hold other things too.
                continue
        return [day for day in days if since <= day <= until]

    def _objects(self, kind: Kind, day: date) -> dict[str, int]:
        """Without the list of the day, and without files of others."""
        sizes = self._destination.sizes(directory_of(kind, day))
        return {name: size for name, size in sorted(sizes.items()) if OBJECT.fullmatch(name)}

    def _manifest(self, content: bytes, kind: Kind, day: date) -> Manifest:
        try:
            return checked(msgspec.json.decode(content, type=Manifest), kind, day)
        except ValueError as error:
            raise ArchiveUnavailable(f"{self._destination.location}: {error}") from None

    def _local(self, name: str) -> Path | None:
        return Path(self._destination.location) / name if isinstance(self._destination, Directory) else None

    def _download(self, name: str, path: Path) -> Path:
        content = self._destination.get(name)
        if content is None:
            raise ArchiveUnavailable(f"{self._destination.location}: {name} is gone")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path
