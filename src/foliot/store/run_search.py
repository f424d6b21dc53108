"""Counts the runs that pass filters: in all, by time, and by their most frequent values.

The statements stand with those of the lists, whose filters they share. Each reads a bounded number of runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from foliot.model.ids import first_id_of, not_finished_before
from foliot.model.states import RunState
from foliot.store import queries
from foliot.store.postgres import Database
from foliot.store.run_lists import RunFilter, Span, Where


@dataclass(frozen=True, slots=True)
class Facet:
    kind: str
    """state, queue, task, job, worker, error or tag."""
    value: str | None
    id: UUID | None
    """Of a job or a worker."""
    count: int


@dataclass(frozen=True, slots=True)
class Counted:
    wanted: int
    read: int
    oldest_read: UUID | None
    facets: list[Facet]


@dataclass(slots=True)
class Bucket:
    begin: datetime
    end: datetime
    read: int = 0
    last_read: UUID | None = None
    states: dict[RunState, int] = field(default_factory=dict)


class RunSearch:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("run_lists")

    async def count_wanted_runs(
        self,
        where: Where,
        span: Span,
        times: tuple[datetime, datetime],
        wanted: RunFilter,
        job_id: UUID | None,
        *,
        scan: int,
        top: int,
    ) -> Counted:
        """`times`: between which the ticks of a job are counted."""
        first, *rows = await self._database.fetch(
            self._queries["count_wanted_runs"],
            place=where,
            before=span.before,
            live_from=span.live_from,
            history_from=span.history_from,
            scan=scan,
            finished_from=span.finished_from,
            parent_id=wanted.parent,
            reads_payload=wanted.payload is not None,
            wanted=wanted.encoded(self._database.clock.sql_now()),
            job_id=job_id,
            from_at=times[0],
            until_at=times[1],
            top=top,
        )
        return Counted(first[4], first[3], first[2], [Facet(*list(row)[:4]) for row in rows])

    async def count_runs_by_time(
        self, where: Where, bounds: Sequence[datetime], wanted: RunFilter, job_id: UUID | None, *, each: int
    ) -> list[Bucket]:
        """One bucket between each bound and the next."""
        ids, begins, ends = [first_id_of(bound) for bound in bounds], bounds[:-1], bounds[1:]
        buckets = [Bucket(begin, end) for begin, end in zip(begins, ends, strict=True)]
        rows = await self._database.fetch(
            self._queries["count_runs_by_time"],
            place=where,
            from_ids=ids[:-1],
            until_ids=ids[1:],
            from_times=begins,
            until_times=ends,
            finished_from=[not_finished_before(first) for first in ids[:-1]],
            each=each,
            reads_payload=wanted.payload is not None,
            wanted=wanted.encoded(self._database.clock.sql_now()),
            job_id=job_id,
        )
        for number, state, count, read, last_id in rows:
            bucket = buckets[number]
            bucket.read, bucket.last_read = read, last_id
            if count:
                bucket.states[RunState(state)] = count
        return buckets
