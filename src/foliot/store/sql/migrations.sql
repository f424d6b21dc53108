-- Which migrations have been applied.

-- name: lock_migrations
-- For the length of the transaction, so that it also works behind a pooler.
select pg_advisory_xact_lock(hashtextextended('foliot.migrations', 0))

-- name: create_schema
-- Everything of ours lives in a schema of its own.
create schema if not exists foliot

-- name: create_migrations
-- The only table that no migration makes.
create table if not exists foliot.migrations (
    version bigint primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default clock_timestamp()
)

-- name: has_migrations
-- A database that was never migrated has no such table.
select to_regclass('foliot.migrations') is not null

-- name: list_migrations
-- In order, with what they held when they were applied, and the newest migration that a process must know to work
-- beside each. By way of JSON, since a table from before that was written down lacks the column.
select m.version, m.checksum, coalesce((to_jsonb(m) ->> 'works_beside')::bigint, m.version) from foliot.migrations m order by m.version

-- name: declare_migrations
-- After all have been applied: one of them makes the column.
update foliot.migrations m set works_beside = d.works_beside
from unnest($1::bigint[], $2::bigint[]) as d (version, works_beside)
where m.version = d.version and m.works_beside is distinct from d.works_beside

-- name: record_migration
-- In the same transaction as the migration itself.
insert into foliot.migrations (version, name, checksum) values ($1::bigint, $2::text, $3::text)
