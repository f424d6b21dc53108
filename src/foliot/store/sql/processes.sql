-- Processes at work with this schema, and which migrations they know.

-- name: wait_for_migrations
-- Migrations that are being applied are waited for, and those to come wait for us: a process is either seen by `foliot
-- migrate`, or sees what that has done.
select pg_advisory_xact_lock_shared(hashtextextended('foliot.migrations', 0))

-- name: tell_process(id, part, name, knows, ttl_seconds, known, now)
-- It is at work, for so many seconds (:ttl_seconds). The migrations that it does not know (:known), with the newest
-- that it must know to work beside each. A process that died tells nothing more, and is forgotten.
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
-- A clean stop.
delete from foliot.processes where id = :id::uuid

-- name: has_processes
-- A schema from before processes told of themselves has no such table.
select to_regclass('foliot.processes') is not null

-- name: list_misfits(needed)
-- Processes at work that could not work beside a migration that asks for this one (:needed).
select part, name, knows from foliot.processes
where knows < :needed::bigint and expires_at > clock_timestamp() order by part, name
