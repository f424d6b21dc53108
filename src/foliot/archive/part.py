"""A part of a slice: consecutive rows, with one object for each namespace."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from foliot.archive.encoding import SUFFIXES, Encoder, Format, encoder_of
from foliot.model.archive import ArchivedObject, Kind, Place, object_name

Row = Mapping[str, Any]
# Bounds of the memory that a part takes. They depend on the rows alone, so that a repetition makes the same parts.
ROWS_MAX = 20_000
BYTES_MAX = 33_554_432
NAMESPACES_MAX = 64
FIXED_BYTES = 300
"""Of a row, besides its long texts."""
LONG = ("payload", "result", "output", "error", "options")
ID_OF: Mapping[Kind, str] = {"runs": "id", "attempts": "run_id", "ticks": "job_id", "audit": "id"}


class Part:
    def __init__(self, kind: Kind, form: Format, start: Place) -> None:
        self._kind: Kind = kind
        self._form: Format = form
        self._start = start
        self._encoders: dict[str, Encoder] = {}
        self._ids: dict[str, tuple[UUID, UUID]] = {}
        self._rows: dict[str, int] = defaultdict(int)
        self._bytes = 0
        self.end: Place = start
        """The place of its last row."""
        self.is_full = False

    def take(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        """The rows that still belong to the part, by namespace. The part is full if they are not all of them."""
        taken: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            namespace = row["namespace"]
            is_new = namespace not in self._ids
            if self.is_full or (is_new and len(self._ids) >= NAMESPACES_MAX):
                self.is_full = True
                break
            row_id = row[ID_OF[self._kind]]
            first, last = self._ids.get(namespace, (row_id, row_id))
            self._ids[namespace] = min(first, row_id), max(last, row_id)
            self._rows[namespace] += 1
            self._bytes += FIXED_BYTES + sum(len(row[name] or "") for name in LONG if name in row.keys())  # noqa: SIM118
            self.end = row["at"], row["key"]
            taken[namespace].append(row)
            self.is_full = sum(self._rows.values()) >= ROWS_MAX or self._bytes >= BYTES_MAX
        return taken

    def encode(self, taken: Mapping[str, Sequence[Row]]) -> None:
        for namespace, rows in taken.items():
            if namespace not in self._encoders:
                self._encoders[namespace] = encoder_of(self._kind, self._form)
            self._encoders[namespace].add(rows)

    def objects(self) -> list[tuple[ArchivedObject, bytes]]:
        """Ends the part."""
        made = []
        for namespace, encoder in sorted(self._encoders.items()):
            content = encoder.finish()
            name = object_name(namespace, self._start, SUFFIXES[self._form])
            digest = hashlib.sha256(content).hexdigest()
            first, last = self._ids[namespace]
            made.append(
                (ArchivedObject(name, namespace, self._rows[namespace], len(content), digest, first, last), content)
            )
        return made
