-- Running processes, and the migrations that they know.

-- name: wait_for_migrations
-- Waits for a running migration; later ones wait for this transaction. So `foliot migrate` either sees this process, or
-- this process sees the migration.
select pg_advisory_xact_lock_shared(hashtextextended('foliot.migrations', 0))

-- name: tell_process(id, part, name, knows, ttl_seconds, known, now)
-- Registers this process for :ttl_seconds, and returns the migrations that it does not know (not in :known), each with
-- the newest migration that a process must know to work beside it. A dead process is forgotten when its time has
-- passed.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), told as (
    insert into foliot.processes (id, part, name, knows, started_at, expires_at)
    select :id::uuid, :part::text, :name::text, :knows::bigint, at, at + :ttl_seconds::float8 * interval '1 second'
    from clock
    on conflict (id) do update set expires_at = excluded.expires_at
), forgotten as (
    delete from foliot.processes where id = any (array(
        select p.id from foliot.processes p, clock
        where p.expires_at < clock.at - interval '1 hour' and p.id <> :id::uuid for update of p skip locked
    ))
)
select version, coalesce(works_beside, version) from foliot.migrations where version <> all (:known::bigint[])
order by version

-- name: remove_process(id)
-- A clean shutdown.
delete from foliot.processes where id = :id::uuid

-- name: has_processes
-- Older schemas lack the table.
select to_regclass('foliot.processes') is not null

-- name: list_misfits(needed)
-- Running processes that could not work beside a migration that needs this one (:needed).
select part, name, knows from foliot.processes
where knows < :needed::bigint and expires_at > clock_timestamp() order by part, name

-- name: list_processes
-- Running processes, and the newest migration of the schema.
select part, name, knows, started_at, (select max(version) from foliot.migrations) as newest
from foliot.processes where expires_at > clock_timestamp() order by part, name, started_at limit 1000
