"""Lists failed runs, and reruns finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from foliot.model.ids import none_finished_before
from foliot.model.namespace import Namespace
from foliot.model.priority import aging_microseconds
from foliot.store import queries
from foliot.store.postgres import Database, Transaction
from foliot.store.run_lists import Page, page_of

TREND_PARTS = 24
decode_json = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class DeadFilter:
    namespace: Namespace
    since: datetime
    until: datetime
    task: str | None = None
    queue: str | None = None
    fingerprint: str | None = None
    is_rerun_included: bool = False
    is_dismissed_included: bool = False


@dataclass(frozen=True, slots=True)
class DeadLetter:
    id: UUID
    name: str | None
    task: str
    queue: str
    reason: str | None
    attempt: int
    worker_id: UUID | None
    job_id: UUID | None
    rerun_of: UUID | None
    rerun_as: UUID | None
    error: Any
    fingerprint: str
    created_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True)
class DeadGroup:
    fingerprint: str
    count: int
    first_at: datetime
    last_at: datetime
    sample_id: UUID
    task: str
    queue: str
    kind: str | None
    message: str | None
    trend: Sequence[int]
    """How many failed in each twenty-fourth of the time, the oldest part first."""
    note: str | None
    noted_by: str | None
    noted_at: datetime | None
    dismissed_until: datetime | None
    """Failures up to this instant were dismissed."""
    dismissed_by: str | None


@dataclass(frozen=True, slots=True)
class Rerun:
    old_id: UUID
    new_id: UUID
    queue: str


class DeadLetters:
    def __init__(self, database: Database, *, aging_seconds: float) -> None:
        self._database = database
        self._aging = aging_microseconds(aging_seconds)
        self._queries = queries.load("dead_letters")

    async def list_dead_letters(
        self, wanted: DeadFilter, before: tuple[datetime, UUID], *, limit: int, scan: int
    ) -> Page[DeadLetter, tuple[datetime, UUID]]:
        filters = (
            wanted.task,
            wanted.queue,
            wanted.fingerprint,
            wanted.is_rerun_included,
            wanted.is_dismissed_included,
            limit + 1,
            wanted.namespace.name,
        )
        rows = await self._database.fetch(self._queries["list_dead_letters"], wanted.since, *before, scan, *filters)
        items = [_letter(list(row)[3:]) for row in rows if row[3] is not None]
        last = (rows[0][1], rows[0][2]) if rows[0][0] >= scan else None
        return page_of(items, limit, lambda letter: (letter.finished_at, letter.id), last)

    async def group_dead_letters(self, wanted: DeadFilter, *, limit: int, scan: int) -> tuple[list[DeadGroup], bool]:
        """Returns the groups, and whether more dead letters exist than were read."""
        rows = await self._database.fetch(
            self._queries["group_dead_letters"],
            since=wanted.since,
            until=wanted.until,
            scan=scan,
            task=wanted.task,
            queue=wanted.queue,
            fingerprint=wanted.fingerprint,
            is_rerun_included=wanted.is_rerun_included,
            is_dismissed_included=wanted.is_dismissed_included,
            limit=limit,
            namespace=wanted.namespace.name,
            parts=TREND_PARTS,
            now=self._database.clock.sql_now(),
        )
        return [DeadGroup(*list(row)[1:]) for row in rows if row[1] is not None], rows[0][0] >= scan

    async def put_note(self, namespace: Namespace, fingerprint: str, note: str | None, actor: str) -> None:
        await self._database.execute(
            self._queries["put_note"],
            namespace=namespace.name,
            fingerprint=fingerprint,
            note=note,
            actor=actor,
            now=self._database.clock.sql_now(),
        )

    async def put_dismissal(self, namespace: Namespace, fingerprint: str, until: datetime | None, actor: str) -> None:
        await self._database.execute(
            self._queries["put_dismissal"],
            namespace=namespace.name,
            fingerprint=fingerprint,
            until=until,
            actor=actor,
        )

    async def find_dead_letters(
        self, namespace: Namespace, run_ids: Sequence[UUID], *, is_rerun_included: bool
    ) -> dict[UUID, str]:
        """Returns the qualified task of each."""
        rows = await self._database.fetch(
            self._queries["find_dead_letters"],
            run_ids=run_ids,
            finished_from=none_finished_before(run_ids),
            is_rerun_included=is_rerun_included,
            namespace=namespace.name,
        )
        return {row[0]: row[1] for row in rows}

    async def rerun_runs(
        self,
        namespace: Namespace,
        new_ids: Mapping[UUID, UUID],
        *,
        is_any_state: bool = False,
        is_repeated: bool = False,
        payload: str | None = None,
        apart_seconds: float = 0.0,
        first_seconds: float = 0.0,
        keeps_checkpoints: bool = False,
        within: Transaction | None = None,
    ) -> list[Rerun]:
        """`new_ids` maps each finished run to the id of its rerun. `is_repeated` includes runs that were rerun before.

        With `keeps_checkpoints`, durable functions continue after their recorded steps.

        The first rerun is due after `first_seconds`, and each later one `apart_seconds` after the one before.
        """
        old, new = list(new_ids), list(new_ids.values())
        flags = (
            none_finished_before(old),
            is_any_state,
            is_repeated,
            payload,
            none_finished_before(new),
            apart_seconds,
        )
        clock = (self._database.clock.sql_now(), self._aging, first_seconds)
        arguments = (old, new, *flags, *clock, namespace.name, keeps_checkpoints)
        return [Rerun(*row) for row in await (within or self._database).fetch(self._queries["rerun_runs"], *arguments)]


def _letter(values: list[Any]) -> DeadLetter:
    values[10] = None if values[10] is None else decode_json(values[10])
    return DeadLetter(*values)
