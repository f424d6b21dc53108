"""Reads how runs ended, in groups, for the rules of alerts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from foliot.store import queries
from foliot.store.exports import Place
from foliot.store.postgres import Database

PAGE = 20_000
COUNTS_MAX = 10_000
TAIL_BYTES = 2000
decode_tags = msgspec.json.Decoder(list[str]).decode


@dataclass(frozen=True, slots=True)
class Labels:
    """The names and tags that a scope is matched with, as they are stored."""

    job: str | None
    task: str
    queue: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EndingGroup:
    labels: Labels
    succeeded: int
    failed: int
    succeeded_at: datetime | None
    """The last one."""
    failed_at: datetime | None
    failed_ids: Sequence[UUID]
    """The latest of them."""


@dataclass(frozen=True, slots=True)
class EndingPage:
    groups: Sequence[EndingGroup]
    number: int
    reached: Place | None

    @property
    def is_full(self) -> bool:
        return self.number == PAGE


@dataclass(frozen=True, slots=True)
class Failure:
    attempt: int
    reason: str | None
    kind: str | None
    message: str | None
    tail: str


def labels_of(job: str | None, task: str, queue: str, tags: str | None) -> Labels:
    return Labels(job, task, queue, () if tags is None else tuple(decode_tags(tags)))


class AlertEndings:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("alert_endings")

    async def sum_up_endings(self, after: Place, until: datetime) -> EndingPage:
        rows = await self._database.fetch(
            self._queries["sum_up_endings"], after_at=after[0], after_id=after[1], until=until, limit=PAGE
        )
        groups = [EndingGroup(labels_of(*row[:4]), row[4], row[5], row[6], row[7], row[8] or ()) for row in rows]
        return EndingPage(groups, sum(row[9] for row in rows), (rows[0][10], rows[0][11]) if rows else None)

    async def advance_alerts(
        self, owner: UUID, old: Place, new: Place, counts: Mapping[tuple[str, str, datetime], tuple[int, int]]
    ) -> bool:
        """`counts`: of each rule, subject and time, how many runs succeeded and failed. Returns False if the place had
        been moved before."""
        rows = [
            {"rule": rule, "subject": subject, "at": at, "succeeded": succeeded, "failed": failed}
            for (rule, subject, at), (succeeded, failed) in counts.items()
        ]
        return bool(
            await self._database.fetch_value(
                self._queries["advance_alerts"],
                owner=owner,
                old_at=old[0],
                old_id=old[1],
                at=new[0],
                id=new[1],
                counts=msgspec.json.encode(rows).decode(),
            )
        )

    async def read_counts(self, starts: Mapping[str, datetime]) -> dict[tuple[str, str], tuple[int, int]]:
        """Of each rule and subject, the runs that succeeded and failed since the rule's time."""
        rows = await self._database.fetch(
            self._queries["read_counts"], rules=list(starts), starts=list(starts.values()), limit=COUNTS_MAX
        )
        return {(row[0], row[1]): (row[2], row[3]) for row in rows}

    async def forget_counts(self, starts: Mapping[str, datetime]) -> None:
        await self._database.execute(self._queries["forget_counts"], rules=list(starts), starts=list(starts.values()))

    async def recovered_jobs(self, failed: Mapping[str, datetime]) -> set[str]:
        """The jobs that have succeeded since they failed."""
        rows = await self._database.fetch(
            self._queries["recovered_jobs"], names=list(failed), failed=list(failed.values())
        )
        return {row[0] for row in rows}

    async def describe_failures(self, run_ids: Sequence[UUID], finished_from: datetime) -> dict[UUID, Failure]:
        rows = await self._database.fetch(
            self._queries["describe_failures"],
            run_ids=run_ids,
            finished_from=finished_from,
            tail_bytes=TAIL_BYTES,
        )
        return {
            row[0]: Failure(row[1], row[2], row[3], row[4], (row[5] or b"").decode(errors="replace")) for row in rows
        }
