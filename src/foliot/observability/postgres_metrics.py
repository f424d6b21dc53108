"""The health of PostgreSQL as metrics, for installations without a PostgreSQL exporter."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import Metric

from foliot.observability.metric_families import Description, counter, gauge
from foliot.store.database_health import Facts, Replica, Table
from foliot.store.store import Store

UP_TO = "Without the role pg_read_all_stats, sessions of other users are not seen."
CONNECTIONS = Description("foliot_postgres_connections", "gauge", "Client connections to the server.")
CONNECTIONS_MAX = Description("foliot_postgres_connections_max", "gauge", "Connections that the server allows.")
OLDEST = Description(
    "foliot_postgres_oldest_transaction_seconds", "gauge", f"Age of the oldest open transaction. {UP_TO}"
)
LOCKED = Description("foliot_postgres_lock_waits", "gauge", "Sessions that wait for a lock.")
BYTES = Description("foliot_postgres_size_bytes", "gauge", "Size of the database.")
TABLE_BYTES = Description(
    "foliot_postgres_table_size_bytes", "gauge", "Size of a table with its indexes and all its days.", ("table",)
)
LIVE = Description("foliot_postgres_live_rows", "gauge", "Rows of a table, as its statistics estimate.", ("table",))
DEAD = Description("foliot_postgres_dead_rows", "gauge", "Rows of a table that vacuum has not removed yet.", ("table",))
FROZEN = Description("foliot_postgres_transaction_id_age", "gauge", "Age of the oldest transaction id in the database.")
HITS = Description("foliot_postgres_cache_hit_ratio", "gauge", "Share of blocks that were found in the cache.")
DEADLOCKS = Description("foliot_postgres_deadlocks_total", "counter", "Deadlocks in the database.")
REPLICAS = Description("foliot_postgres_replicas", "gauge", "Standbys that are connected.")
LAG = Description(
    "foliot_postgres_replication_lag_seconds", "gauge", "How far the slowest standby is behind. Left out if unknown."
)
POSTGRES_METRICS = (
    CONNECTIONS, CONNECTIONS_MAX, OLDEST, LOCKED, BYTES, TABLE_BYTES, LIVE, DEAD, FROZEN, HITS, DEADLOCKS, REPLICAS,
    LAG,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PostgresReading:
    facts: Facts
    tables: list[Table]
    replicas: list[Replica]


async def read_postgres(store: Store) -> PostgresReading:
    health = store.database_health
    facts, tables, (replicas, _) = await asyncio.gather(
        health.read_facts(), health.list_tables(), health.list_replication()
    )
    return PostgresReading(facts, tables, replicas)


def families_of_postgres(reading: PostgresReading) -> Iterator[Metric]:
    facts = reading.facts
    lags = [replica.lag_seconds for replica in reading.replicas if replica.lag_seconds is not None]
    yield counter(DEADLOCKS, {(): facts.deadlocks})
    for described, value in (
        (CONNECTIONS, facts.connections),
        (CONNECTIONS_MAX, facts.connections_max),
        (OLDEST, facts.oldest_transaction_seconds or 0.0),
        (LOCKED, facts.waiting_for_locks),
        (BYTES, facts.bytes),
        (FROZEN, facts.transaction_id_age),
        (HITS, facts.cache_hit_share),
        (REPLICAS, len(reading.replicas)),
    ):
        yield gauge(described, {(): value})
    yield gauge(LAG, {(): max(lags)} if lags else {})
    yield gauge(TABLE_BYTES, {(table.name,): table.table_bytes + table.index_bytes for table in reading.tables})
    yield gauge(LIVE, {(table.name,): table.live_rows for table in reading.tables})
    yield gauge(DEAD, {(table.name,): table.dead_rows for table in reading.tables})
