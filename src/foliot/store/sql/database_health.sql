-- The health of the database itself. Each statement reads the catalog and the statistics, never a table's rows.

-- name: read_facts
-- Version, size, connections, transactions and the age of the oldest transaction id. Without the role pg_read_all_stats
-- the transactions of other users are not seen.
select
    current_setting('server_version') as version,
    pg_database_size(current_database()) as bytes,
    pg_is_in_recovery() as is_standby,
    (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
    current_setting('max_connections')::bigint as connections_max,
    (
        select extract(epoch from max(clock_timestamp() - xact_start))::float8 from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
    ) as oldest_transaction_seconds,
    (
        select application_name from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
            and xact_start is not null
        order by xact_start limit 1
    ) as oldest_transaction_of,
    (
        select count(*) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
    ) as waiting_for_locks,
    (select age(datfrozenxid)::bigint from pg_database where datname = current_database()) as transaction_id_age,
    coalesce((
        select blks_hit::float8 / nullif(blks_hit + blks_read, 0) from pg_stat_database
        where datname = current_database()
    ), 1) as cache_hit_share,
    (select deadlocks from pg_stat_database where datname = current_database()) as deadlocks,
    current_setting('autovacuum')::boolean as has_autovacuum,
    current_setting('shared_preload_libraries') ~ 'pg_stat_statements'
        and to_regclass('pg_stat_statements') is not null as has_statements,
    clock_timestamp() as now

-- name: list_tables
-- Foliot's tables, the days of one together. The days of the last week that have ended show how fast a table grows.
with parts as (
    select coalesce(parent.relname, c.relname) as name, c.oid, c.relispartition,
        pg_table_size(c.oid) as table_bytes, pg_indexes_size(c.oid) as index_bytes,
        case when c.relispartition then to_date(right(c.relname, 8), 'YYYYMMDD') end as day
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'foliot'
    left join pg_inherits i on i.inhrelid = c.oid
    left join pg_class parent on parent.oid = i.inhparent
    where c.relkind = 'r'
)
select p.name, count(*) filter (where p.relispartition) as days,
    sum(p.table_bytes)::bigint as table_bytes, sum(p.index_bytes)::bigint as index_bytes,
    sum(coalesce(s.n_live_tup, 0))::bigint as live_rows, sum(coalesce(s.n_dead_tup, 0))::bigint as dead_rows,
    max(greatest(s.last_autovacuum, s.last_vacuum)) as vacuumed_at,
    (avg(p.table_bytes + p.index_bytes) filter (
        where p.day between current_date - 7 and current_date - 1 and coalesce(s.n_live_tup, 0) > 0
    ))::bigint as bytes_per_day
from parts p left join pg_stat_user_tables s on s.relid = p.oid
group by p.name order by sum(p.table_bytes + p.index_bytes) desc, p.name

-- name: list_replicas
-- Standbys that are connected, and how far behind they are.
select application_name, state, sync_state = 'sync' as is_synchronous,
    extract(epoch from replay_lag)::float8 as lag_seconds,
    case when pg_is_in_recovery() then null
        else pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint end as lag_bytes
from pg_stat_replication order by application_name limit 100

-- name: list_slots
-- Replication slots, and the log that PostgreSQL keeps for them.
select slot_name::text, active,
    case when pg_is_in_recovery() then null
        else pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint end as kept_bytes
from pg_replication_slots order by slot_name limit 100
