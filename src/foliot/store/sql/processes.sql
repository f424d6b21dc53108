-- Processes at work with this schema, and which migrations they know.

-- name: wait_for_migrations
-- Migrations that are being applied are waited for, and those to come wait for us: a process is either seen by `foliot
-- migrate`, or sees what that has done.
select pg_advisory_xact_lock_shared(hashtextextended('foliot.migrations', 0))

-- name: tell_process
-- It is at work, for so many seconds ($5). The migrations that it does not know ($6), with the newest that it must know
-- to work beside each. A process that died tells nothing more, and is forgotten.
with clock as (
    select coalesce($7::timestamptz, clock_timestamp()) as at
), told as (
    insert into foliot.processes (id, part, name, knows, started_at, expires_at)
    select $1::uuid, $2::text, $3::text, $4::bigint, at, at + $5::float8 * interval '1 second' from clock
    on conflict (id) do update set expires_at = excluded.expires_at
), forgotten as (
    delete from foliot.processes where id = any (array(
        select p.id from foliot.processes p, clock
        where p.expires_at < clock.at - interval '1 hour' and p.id <> $1::uuid for update of p skip locked
    ))
)
select version, coalesce(works_beside, version) from foliot.migrations where version <> all ($6::bigint[]) order by version

-- name: remove_process
-- A clean stop.
delete from foliot.processes where id = $1::uuid

-- name: has_processes
-- A schema from before processes told of themselves has no such table.
select to_regclass('foliot.processes') is not null

-- name: list_misfits
-- Processes at work that could not work beside a migration that asks for this one ($1).
select part, name, knows from foliot.processes
where knows < $1::bigint and expires_at > clock_timestamp() order by part, name
