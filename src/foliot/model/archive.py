"""The archive's layout: kinds of rows, their columns, the names of objects, and the list of a day's objects. Pure.

An object holds rows of one kind, day (UTC) and namespace: `runs/day=2026-03-01/namespace=shop/081500.000000.parquet`.
The directories are Hive partitions, which DuckDB, Spark, Trino and Athena understand. The name tells the time at which
the object begins, so that a repeated upload replaces the first one. `runs/day=2026-03-01/manifest.json` lists the
objects of a complete day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal
from uuid import UUID

import msgspec

Kind = Literal["runs", "attempts", "ticks", "audit"]
Type = Literal["id", "ids", "text", "number", "time", "json", "output"]
KINDS: tuple[Kind, ...] = ("runs", "attempts", "ticks", "audit")
FIRST_ID = UUID(int=0)
DAY = timedelta(days=1)
Place = tuple[datetime, UUID]
"""The time of the last row that was archived, and its key."""

COLUMNS: Mapping[Kind, Mapping[str, Type]] = {
    "runs": {
        "id": "id", "name": "text", "task": "text", "queue": "text", "state": "text", "reason": "text",
        "priority": "number", "attempt": "number", "lost": "number", "worker_id": "id", "job_id": "id",
        "tick_at": "time", "parent_id": "id", "step": "text", "upstream": "ids", "rerun_of": "id",
        "fingerprint": "text", "tags": "json", "payload": "json", "options": "json", "result": "json",
        "error": "json", "output": "output", "created_at": "time", "due_at": "time", "started_at": "time",
        "finished_at": "time",
    },
    "attempts": {
        "run_id": "id", "token": "number", "attempt": "number", "worker_id": "id", "outcome": "text",
        "error": "json", "output": "output", "started_at": "time", "finished_at": "time",
    },
    "ticks": {
        "job_id": "id", "job": "text", "tick_at": "time", "until_at": "time", "reason": "text", "blocked_by": "id",
        "noted_at": "time",
    },
    "audit": {
        "id": "id", "actor": "text", "actor_namespace": "text", "token_id": "text", "role": "text",
        "address": "text", "request_id": "text", "method": "text", "path": "text", "action": "text",
        "target": "text", "status": "number", "code": "text", "noted_at": "time",
    },
}  # fmt: skip
KIND_OF_TABLE: Mapping[str, Kind] = {"history": "runs", "attempts": "attempts", "ticks": "ticks", "audit": "audit"}
TABLE_OF_KIND: Mapping[Kind, str] = {kind: table for table, kind in KIND_OF_TABLE.items()}
OBJECT = re.compile(r"namespace=[a-z0-9_][a-z0-9_-]{0,62}/[0-9]{6}\.[0-9]{6}(-[0-9a-f]{32})?\.(parquet|jsonl\.gz)")


class ArchivedObject(msgspec.Struct, frozen=True):
    name: str
    """Below the directory of the kind and the day."""
    namespace: str
    rows: int
    bytes: int
    sha256: str
    first_id: UUID
    last_id: UUID
    """The smallest and the largest id of a run, job or entry in it."""


class Manifest(msgspec.Struct, frozen=True):
    """The list of a complete day's objects."""

    kind: Kind
    day: date
    objects: list[ArchivedObject]
    version: int = 1


def day_start(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)


def directory_of(kind: Kind, day: date) -> str:
    return f"{kind}/day={day}/"


def manifest_name(kind: Kind, day: date) -> str:
    return f"{directory_of(kind, day)}manifest.json"


def object_name(namespace: str, place: Place, suffix: str) -> str:
    """The name of the object with the rows behind a place, below the directory of its day."""
    at, key = place
    behind = "" if key == FIRST_ID else f"-{key.hex}"
    return f"namespace={namespace}/{at:%H%M%S.%f}{behind}.{suffix}"


def slice_start(at: datetime, minutes: int) -> datetime:
    """The beginning of the slice of the day that contains the time."""
    start, width = day_start(at.date()), timedelta(minutes=minutes)
    return start + (at - start) // width * width


def slice_end(at: datetime, minutes: int) -> datetime:
    return slice_start(at, minutes) + timedelta(minutes=minutes)


def checked(manifest: Manifest, kind: Kind, day: date) -> Manifest:
    """The manifest, if it is one of this kind and day and names only objects below them. Raises `ValueError`."""
    if (manifest.kind, manifest.day, manifest.version) != (kind, day, 1):
        raise ValueError(f"{manifest_name(kind, day)} is not the list of {kind} of {day} in version 1")
    for one in manifest.objects:
        if not OBJECT.fullmatch(one.name):
            raise ValueError(f"{manifest_name(kind, day)} names {one.name!r}, which is no object of that day")
    return manifest
