-- Daily partitions of history, attempts, ticks, logs and the audit log.

-- name: today(now)
-- Days are UTC days.
select (coalesce(:now::timestamptz, clock_timestamp()) at time zone 'utc')::date

-- name: list_partitions(parents)
-- An interrupted detach is pending, and must be finished before another begins.
select c.relname, i.inhdetachpending
from pg_inherits i
join pg_class c on c.oid = i.inhrelid
join pg_class p on p.oid = i.inhparent
join pg_namespace n on n.oid = p.relnamespace
where n.nspname = 'foliot' and p.relname = any (:parents::text[]) and p.relkind = 'p' and c.relkind = 'r'
order by c.relname

-- name: list_detached(patterns)
-- Tables named like partitions that have no parent any more.
select c.relname
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'foliot' and c.relkind = 'r' and c.relname like any (:patterns::text[]) and c.relname ~ '_[0-9]{8}$'
    and not exists (select from pg_inherits i where i.inhrelid = c.oid)
order by c.relname

-- name: lock_partitions
-- Lets one transaction at a time create a day.
select pg_advisory_xact_lock(hashtextextended('foliot.partitions', 0))

-- name: is_attached(name)
-- Checked again under the lock.
select exists (
    select from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'foliot' and c.relname = :name::text
)
