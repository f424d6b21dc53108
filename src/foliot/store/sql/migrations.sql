-- Which migrations have been applied.

-- name: lock_migrations
-- Lets one migration run at a time. The lock lasts for the transaction, so that it also works behind a pooler.
select pg_advisory_xact_lock(hashtextextended('foliot.migrations', 0))

-- name: create_schema
-- Creates the schema that holds every object of Foliot.
create schema if not exists foliot

-- name: create_migrations
-- Creates the only table that no migration creates. `works_beside` is the newest migration that a process must know to
-- work beside this one; null means this one itself. The row of the newest migration holds the checksums of the
-- functions that the database has.
create table if not exists foliot.migrations (
    version bigint primary key,
    name text not null,
    checksum text not null,
    applied_at timestamptz not null default clock_timestamp(),
    works_beside bigint,
    functions jsonb
)

-- name: has_migrations
-- Says whether the database was ever migrated.
select to_regclass('foliot.migrations') is not null

-- name: list_migrations
-- Lists the applied migrations in order.
select version, checksum, coalesce(works_beside, version) as works_beside from foliot.migrations order by version

-- name: record_migration(version, name, checksum, works_beside)
-- Records a migration, in the transaction that applies it.
insert into foliot.migrations (version, name, checksum, works_beside)
values (:version::bigint, :name::text, :checksum::text, :works_beside::bigint)

-- name: function_checksums
-- The functions that the database has, each with the checksum of its file.
select f.key, f.value
from (select functions from foliot.migrations order by version desc limit 1) as newest,
    jsonb_each_text(coalesce(newest.functions, '{}')) as f

-- name: record_functions(functions)
-- Records the functions, in the transaction that creates them.
update foliot.migrations set functions = :functions::jsonb where version = (select max(version) from foliot.migrations)
