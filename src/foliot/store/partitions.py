"""The days of history, attempts, ticks, logs and the audit record: made a week ahead, dropped whole when retention is
over.

Neither blocks a running system: a day is made apart and attached, and an old one is detached concurrently before it is
dropped. There is no default partition, because it would forbid the concurrent detach. A write that meets a missing day
has it made by the `Database`, whatever statement it is: after a week without a scheduler, or when the clock was set, no
write fails for it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from foliot.store import queries
from foliot.store.postgres import Database

PARENTS = ("history", "attempts", "ticks", "logs", "audit")
DAYS_AHEAD = 7


class Partitions:
    def __init__(self, database: Database, *, retention_days: int, audit_retention_days: int) -> None:
        self._database = database
        self._retention = timedelta(days=retention_days)
        self._audit_retention = timedelta(days=audit_retention_days)
        self._queries = queries.load("partitions")
        database.make_days = self.create_missing

    async def create_missing(self) -> int:
        """Makes the days from yesterday to a week ahead that are not there; the number made."""
        today = await self._today()
        wanted = [today + timedelta(days=offset) for offset in range(-1, DAYS_AHEAD + 1)]
        existing = {name for name, _ in await self._list()}
        missing = [(parent, day) for parent in PARENTS for day in wanted if partition_name(parent, day) not in existing]
        for parent, day in missing:
            await self._create(parent, day)
        return len(missing)

    async def drop_expired(self) -> int:
        """Drops the days that ended before retention began; the number dropped."""
        today = await self._surely_today()
        expired = [(name, is_detaching) for name, is_detaching in await self._list() if self._is_over(name, today)]
        # One detach at a time may be pending in a parent: what was interrupted is finished before another begins.
        for name, is_detaching in sorted(expired, key=lambda found: not found[1]):
            parent = name.rpartition("_")[0]
            how = "finalize" if is_detaching else "concurrently"
            await self._database.command(
                "detach_partition", f"alter table foliot.{parent} detach partition foliot.{name} {how}"
            )
        for name in await self._list_detached():
            if self._is_over(name, today):
                await self._database.command("drop_partition", f"drop table if exists foliot.{name}")
        return len(expired)

    async def oldest_kept(self) -> datetime:
        """What ended before then is over."""
        return datetime.combine(await self._surely_today() - self._retention, time.min, tzinfo=UTC)

    def _is_over(self, name: str, today: date) -> bool:
        kept = self._audit_retention if name.startswith("audit_") else self._retention
        return partition_day(name) < today - kept

    async def _create(self, parent: str, day: date) -> None:
        name = partition_name(parent, day)
        async with self._database.transaction() as session:
            # Two nodes may find the same day missing.
            await session.execute(self._queries["lock_partitions"].sql)
            if await session.fetchval(self._queries["is_attached"].sql, name):
                return
            # First of all: a detach that is under way waits for all who hold a lock on the parent, and we may have to
            # wait for the detach.
            await session.execute(f"lock table only foliot.{parent} in share update exclusive mode")
            await session.execute(f"create table if not exists foliot.{name} (like foliot.{parent} including all)")
            await session.execute(
                f"alter table foliot.{parent} attach partition foliot.{name} "
                f"for values from ('{day} 00:00:00+00') to ('{day + timedelta(days=1)} 00:00:00+00')"
            )

    async def _surely_today(self) -> date:
        """The earlier of what the database and this node think: a database whose clock has leapt ahead must not cost us
        our history."""
        return min(await self._today(), self._database.clock.now().date())

    async def _today(self) -> date:
        today: date = await self._database.fetch_value(self._queries["today"], now=self._database.clock.sql_now())
        return today

    async def _list(self) -> list[tuple[str, bool]]:
        rows = await self._database.fetch(self._queries["list_partitions"], parents=list(PARENTS))
        return [(row[0], row[1]) for row in rows]

    async def _list_detached(self) -> list[str]:
        rows = await self._database.fetch(
            self._queries["list_detached"], patterns=[f"{parent}_________" for parent in PARENTS]
        )
        return [row[0] for row in rows]


def partition_name(parent: str, day: date) -> str:
    return f"{parent}_{day:%Y%m%d}"


def partition_day(name: str) -> date:
    return date.fromisoformat(name.rpartition("_")[2])
