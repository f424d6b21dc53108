"""Daily partitions of history, attempts, ticks, logs and the audit log: created a week ahead, dropped after retention.

Neither blocks a running system: a day is created on its own and then attached, and an old day is detached concurrently
before it is dropped. There is no default partition, because it would prevent the concurrent detach. A write that finds
no partition makes the `Database` create the day. So no write fails after a week without a scheduler, or after the clock
was set.

While an archive is on (see `archives.sql`), a day is dropped only once the archive has confirmed it and holds as many
rows as the day. This holds for every node, also one that has no archive in its settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from foliot.model.archive import KIND_OF_TABLE, day_start
from foliot.store import queries
from foliot.store.archives import Archives, ArchiveState
from foliot.store.postgres import MAINTENANCE_SECONDS, Database, Transaction

PARENTS = ("history", "attempts", "ticks", "logs", "audit")
DAYS_AHEAD = 7


class Partitions:
    def __init__(
        self, database: Database, *, archives: Archives, retention_days: int, audit_retention_days: int
    ) -> None:
        self._database = database
        self._archives = archives
        self._retention = timedelta(days=retention_days)
        self._audit_retention = timedelta(days=audit_retention_days)
        self._queries = queries.load("partitions")
        database.make_days = self.create_missing

    async def create_missing(self) -> int:
        """Creates the missing days from yesterday to a week ahead. Returns their number."""
        today = await self._today()
        wanted = [today + timedelta(days=offset) for offset in range(-1, DAYS_AHEAD + 1)]
        existing = {name for name, _ in await self._list()}
        missing = [(parent, day) for parent in PARENTS for day in wanted if partition_name(parent, day) not in existing]
        for parent, day in missing:
            await self._create(parent, day)
        return len(missing)

    async def first_days(self) -> dict[str, date]:
        """The first day of each table."""
        found: dict[str, date] = {}
        for name, _ in await self._list():
            parent, day = name.rpartition("_")[0], partition_day(name)
            found[parent] = min(day, found.get(parent, day))
        return found

    async def list_unarchived(self) -> list[str]:
        """The days whose retention has passed and that wait for the archive."""
        today, archives = await self._surely_today(), await self._archives.list_archives()
        return [
            name for name, _ in await self._list()
            if self._is_expired(name, today) and not _is_past(name, archives)
        ]  # fmt: skip

    async def drop_expired(self) -> int:
        """Drops the days before retention that need no archive or are in it. Returns their number."""
        today, archives = await self._surely_today(), await self._archives.list_archives()
        expired = [
            (name, is_detaching)
            for name, is_detaching in await self._list()
            if self._is_expired(name, today)
            and _is_past(name, archives)
            and (is_detaching or not archives or await self._is_archived(name))
        ]
        # PostgreSQL allows one pending detach for each parent, so an interrupted one is finished first.
        for name, is_detaching in sorted(expired, key=lambda found: not found[1]):
            parent = name.rpartition("_")[0]
            how = "finalize" if is_detaching else "concurrently"
            await self._database.command(
                "detach_partition", f"alter table foliot.{parent} detach partition foliot.{name} {how}"
            )
        for name in await self._list_detached():
            if self._is_expired(name, today):
                await self._database.command("drop_partition", f"drop table if exists foliot.{name}")
        return len(expired)

    async def oldest_kept(self) -> datetime:
        """Returns the beginning of retention; or of what is kept for longer, because it is not archived."""
        kept = datetime.combine(await self._surely_today() - self._retention, time.min, tzinfo=UTC)
        return min([kept, *(archive.at for archive in await self._archives.list_archives() if archive.kind == "runs")])

    async def _is_archived(self, name: str) -> bool:
        """Whether the archive has as many rows as the day. Rows may come after a day is complete, when a clock was set
        back; then the day is archived again."""
        parent, day = name.rpartition("_")[0], partition_day(name)
        kind = KIND_OF_TABLE.get(parent)
        if kind is None:
            return True
        count = queries.Query("count_day", f"-- Of a day.\nselect count(*) from foliot.{name}")

        async def work(within: Transaction) -> int:
            return int(await within.fetch_value(count))

        rows = await self._database.in_transaction("count_day", work, statement_seconds=MAINTENANCE_SECONDS)
        if rows <= await self._archives.archived_rows(kind, day):
            return True
        await self._archives.reopen_archive(kind, day)
        return False

    def _is_expired(self, name: str, today: date) -> bool:
        kept = self._audit_retention if name.startswith("audit_") else self._retention
        return partition_day(name) < today - kept

    async def _create(self, parent: str, day: date) -> None:
        name = partition_name(parent, day)
        async with self._database.transaction() as session:
            # Two nodes may find the same day missing.
            await session.execute(self._queries["lock_partitions"].sql)
            if await session.fetchval(self._queries["is_attached"].sql, name):
                return
            # Before any other lock on the parent: a running detach waits for those locks, and this may have to wait for
            # the detach.
            await session.execute(f"lock table only foliot.{parent} in share update exclusive mode")
            await session.execute(f"create table if not exists foliot.{name} (like foliot.{parent} including all)")
            await session.execute(
                f"alter table foliot.{parent} attach partition foliot.{name} "
                f"for values from ('{day} 00:00:00+00') to ('{day + timedelta(days=1)} 00:00:00+00')"
            )

    async def _surely_today(self) -> date:
        """The earlier of the database's date and this node's, so that a database clock that jumps ahead does not delete
        history."""
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


def _is_past(name: str, archives: Sequence[ArchiveState]) -> bool:
    """Whether the archive has the whole day. Logs are the output of attempts, which is archived with their runs."""
    parent, end = name.rpartition("_")[0], day_start(partition_day(name) + timedelta(days=1))
    kinds = ("runs", "attempts") if parent == "logs" else (KIND_OF_TABLE[parent],)
    return all(archive.at >= end for archive in archives if archive.kind in kinds)
