"""The versions of recurring jobs, also of deleted ones, whose versions are kept for as long as history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.namespace import Namespace
from foliot.model.schedule import Schedule
from foliot.store import queries
from foliot.store.jobs import decode_json, decode_schedule
from foliot.store.postgres import Database, Record

DELETED_SCAN_MAX = 2_000
BATCH = 500


@dataclass(frozen=True, slots=True)
class JobVersion:
    job_id: UUID
    number: int
    made_at: datetime
    made_by: str | None
    """None if the worker made it, from a job that is declared in code."""
    deleted_at: datetime | None
    """If set, the job was deleted then, when this version was current."""
    deleted_by: str | None
    runs_left: int | None
    """How many runs the job had left when it was deleted."""
    name: str
    task: str
    queue: str
    priority: int
    schedule: Schedule
    payload: Any
    options: Any


@dataclass(frozen=True, slots=True)
class DeletedJob:
    id: UUID
    version: int
    deleted_at: datetime
    deleted_by: str | None
    name: str
    schedule: Schedule


class JobVersions:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("job_versions")

    async def list_versions(self, job_id: UUID, before: int | None, limit: int) -> list[JobVersion]:
        """The latest first; those before a version."""
        rows = await self._database.fetch(self._queries["list_versions"], job_id=job_id, before=before, limit=limit)
        return [_version(row) for row in rows]

    async def get_version(self, job_id: UUID, number: int) -> JobVersion | None:
        found = await self.list_versions(job_id, number + 1, 1)
        return found[0] if found and found[0].number == number else None

    async def find_deleted_job(self, job_id: UUID | None, name: str) -> UUID | None:
        """By id, or the one of a name that was deleted last."""
        found: UUID | None = await self._database.fetch_value(
            self._queries["find_deleted_job"], job_id=job_id, name=name
        )
        return found

    async def list_deleted_jobs(self, namespace: Namespace, limit: int) -> list[DeletedJob]:
        """Those deleted last, among the last ones of all namespaces."""
        rows = await self._database.fetch(
            self._queries["list_deleted_jobs"], namespace=namespace.name, scan=DELETED_SCAN_MAX, limit=limit
        )
        return [DeletedJob(**{**row, "schedule": decode_schedule(row["schedule"])}) for row in rows]

    async def forget_versions(self, oldest_kept: datetime) -> int:
        """Returns the number of versions that were deleted."""
        return int(
            await self._database.fetch_value(self._queries["forget_versions"], oldest_kept=oldest_kept, limit=BATCH)
        )


def _version(row: Record) -> JobVersion:
    fields = dict(row)
    fields["schedule"] = decode_schedule(fields["schedule"])
    # Not decoded here: how deep a payload may be depends on how deep the caller's stack is.
    fields["payload"] = None if fields["payload"] is None else msgspec.Raw(fields["payload"])
    fields["options"] = None if fields["options"] is None else decode_json(fields["options"])
    return JobVersion(**fields)
