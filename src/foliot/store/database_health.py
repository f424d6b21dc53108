"""Reads the health of the database: sizes, dead rows, transactions, replication and slow statements."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from foliot.errors import StoreUnavailable
from foliot.model import database_advice as advice
from foliot.store import queries
from foliot.store.postgres import Database

# Not in the family's file, because the view is only there where an administrator has installed the extension.
SLOW_STATEMENTS = queries.query_of(
    "slow_statements",
    ("limit",),
    """-- Foliot's statements that have taken the most time, as pg_stat_statements counts them.
select left(s.query, 2000), s.calls::bigint, s.total_exec_time::float8 / 1000, s.mean_exec_time::float8 / 1000,
    s.rows::bigint
from pg_stat_statements s join pg_database d on d.oid = s.dbid
where d.datname = current_database() and s.query like '%foliot.%'
order by s.total_exec_time desc limit :limit::bigint""",
)
SHOWN_STATEMENTS = 10


@dataclass(frozen=True, slots=True)
class Facts:
    version: str
    bytes: int
    is_standby: bool
    connections: int
    connections_max: int
    oldest_transaction_seconds: float | None
    oldest_transaction_of: str | None
    """The application name of its session."""
    waiting_for_locks: int
    transaction_id_age: int
    cache_hit_share: float
    deadlocks: int
    has_autovacuum: bool
    has_statements: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    days: int
    """The number of daily partitions; 0 for a table that has none."""
    table_bytes: int
    index_bytes: int
    live_rows: int
    dead_rows: int
    vacuumed_at: datetime | None
    bytes_per_day: int | None
    """The average of the past week, where there are days with rows."""


@dataclass(frozen=True, slots=True)
class Replica:
    name: str
    state: str
    is_synchronous: bool
    lag_seconds: float | None
    lag_bytes: int | None


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    is_active: bool
    kept_bytes: int | None


@dataclass(frozen=True, slots=True)
class Statement:
    query: str
    calls: int
    total_seconds: float
    mean_seconds: float
    rows: int


@dataclass(frozen=True, slots=True)
class ProcessView:
    part: str
    name: str
    knows: int
    """The newest migration that it knows."""
    started_at: datetime
    newest: int
    """The newest migration of the schema."""


class DatabaseHealth:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._queries = queries.load("database_health") | queries.load("processes")

    async def read_facts(self) -> Facts:
        row = await self._database.fetch_row(self._queries["read_facts"])
        assert row is not None  # noqa: S101
        return Facts(*row)

    async def list_tables(self) -> list[Table]:
        return [Table(*row) for row in await self._database.fetch(self._queries["list_tables"])]

    async def list_replication(self) -> tuple[list[Replica], list[Slot]]:
        replicas, slots = await asyncio.gather(
            self._database.fetch(self._queries["list_replicas"]), self._database.fetch(self._queries["list_slots"])
        )
        return [Replica(*row) for row in replicas], [Slot(*row) for row in slots]

    async def slow_statements(self) -> list[Statement]:
        """The view may be there without the rights to read it."""
        try:
            rows = await self._database.fetch(SLOW_STATEMENTS, limit=SHOWN_STATEMENTS)
        except StoreUnavailable:
            raise
        except Exception:
            return []
        return [Statement(*row) for row in rows]

    async def list_processes(self) -> list[ProcessView]:
        return [ProcessView(*row) for row in await self._database.fetch(self._queries["list_processes"])]


def advice_on(
    facts: Facts, tables: list[Table], replicas: list[Replica], slots: list[Slot], ahead: float
) -> list[advice.Advice]:
    """`ahead`: seconds by which the clock of this machine is ahead of that of the database."""
    lags = {one.name: one.lag_seconds for one in replicas if one.lag_seconds is not None}
    kept = {one.name: one.kept_bytes for one in slots if not one.is_active and one.kept_bytes is not None}
    return [
        *advice.of_transaction(facts.oldest_transaction_seconds, facts.oldest_transaction_of),
        *advice.of_connections(facts.connections, facts.connections_max),
        *advice.of_autovacuum(is_on=facts.has_autovacuum, transaction_id_age=facts.transaction_id_age),
        *[found for one in tables for found in advice.of_dead_rows(one.name, one.live_rows, one.dead_rows)],
        *advice.of_replication(lags, kept),
        *advice.of_clock(ahead),
    ]
