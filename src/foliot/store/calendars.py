"""Stores exclusion calendars."""

from __future__ import annotations

import asyncpg
import msgspec

from foliot.model.calendar import CalendarDays, NamedCalendar
from foliot.model.namespace import Namespace
from foliot.store import queries
from foliot.store.postgres import Database, Record

LIST_MAX = 1000
JOBS_COUNTED = 100
"""The jobs of a calendar are counted up to here."""
decode_days = msgspec.json.Decoder(CalendarDays).decode


class Calendars:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("calendars")

    async def put_calendar(self, name: str, days: CalendarDays) -> int:
        """Creates or changes a calendar. Returns its version, which is 1 for a new one."""
        encoded = msgspec.json.encode(days).decode()
        return int(
            await self._database.fetch_value(
                self._queries["put_calendar"], name=name, days=encoded, now=self._database.clock.sql_now()
            )
        )

    async def make_calendar(self, name: str, days: CalendarDays) -> bool:
        """Returns False if the name is taken."""
        return bool(
            await self._database.fetch_value(
                self._queries["make_calendar"],
                name=name,
                days=msgspec.json.encode(days).decode(),
                now=self._database.clock.sql_now(),
                is_repeatable=False,
            )
        )

    async def change_calendar(self, before: NamedCalendar, days: CalendarDays) -> bool:
        """Returns False if the calendar has changed since `before` was read."""
        now, encoded = self._database.clock.sql_now(), msgspec.json.encode(days).decode()
        return bool(
            await self._database.fetch_value(
                self._queries["change_calendar"],
                name=before.name,
                days=encoded,
                now=now,
                version=before.version,
                created_at=before.created_at,
                is_repeatable=False,
            )
        )

    async def get_calendar(self, name: str) -> NamedCalendar | None:
        row = await self._database.fetch_row(self._queries["get_calendar"], name=name, most=JOBS_COUNTED)
        return _calendar(row) if row else None

    async def list_calendars(self, namespace: Namespace) -> list[NamedCalendar]:
        rows = await self._database.fetch(
            self._queries["list_calendars"], limit=LIST_MAX, namespace=namespace.name, most=JOBS_COUNTED
        )
        return [_calendar(row) for row in rows]

    async def delete_calendar(self, name: str, only: NamedCalendar | None = None) -> bool | None:
        """Returns None if a job refers to the calendar, and False if it is gone or no longer equals `only`."""
        arguments = (name, only.version, only.created_at) if only else (name, None, None)
        try:
            return bool(
                await self._database.fetch_value(
                    self._queries["delete_calendar"], *arguments, is_repeatable=only is None
                )
            )
        except asyncpg.ForeignKeyViolationError:
            return None

    async def first_job_with(self, name: str) -> str | None:
        found: str | None = await self._database.fetch_value(self._queries["first_job_with"], name=name)
        return found


def _calendar(row: Record) -> NamedCalendar:
    return NamedCalendar(
        row["name"], row["version"], decode_days(row["days"]), row["created_at"], row["updated_at"], row["jobs"]
    )
