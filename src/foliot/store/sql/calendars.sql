-- Exclusion calendars: named, and shared by the jobs that refer to them.

-- name: put_calendar(name, days, now)
-- Made, or changed if it says something else than before: a version is what the cursors of jobs were found under.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), put as (
    insert into foliot.calendars as c (name, created_at, updated_at, days)
    select :name::text, at, at, :days::jsonb from clock
    on conflict (name) do update set version = c.version + 1, updated_at = excluded.updated_at, days = excluded.days
    where c.days <> excluded.days
    returning version
)
select coalesce((select version from put), (select version from foliot.calendars where name = :name::text))

-- name: make_calendar(name, days, now)
-- Only if there is none of that name.
insert into foliot.calendars (name, created_at, updated_at, days)
select :name::text, at, at, :days::jsonb from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
on conflict (name) do nothing
returning true

-- name: change_calendar(name, days, now, version, created_at)
-- Only if it is what was read: the very calendar (a new one of its name has another beginning), in that version. What
-- says the same as before makes no new version.
update foliot.calendars
set version = version + (days <> :days::jsonb)::int, days = :days::jsonb,
    updated_at = case when days = :days::jsonb then updated_at else coalesce(:now::timestamptz, clock_timestamp()) end
where name = :name::text and version = :version::bigint and created_at = :created_at::timestamptz
returning true

-- name: get_calendar(name)
-- By name.
select name, version, days, created_at, updated_at from foliot.calendars where name = :name::text

-- name: list_calendars(limit, namespace)
-- All of a namespace, by name: there are few.
select name, version, days, created_at, updated_at from foliot.calendars
where foliot.namespace_of(name) = :namespace::text order by name limit :limit::bigint

-- name: delete_calendar(name, version, created_at)
-- Refused by a foreign key while a job refers to it. Given a version (:version, :created_at), only that.
delete from foliot.calendars
where name = :name::text and (:version::bigint is null
    or (version = :version::bigint and created_at = :created_at::timestamptz))
returning true

-- name: first_job_with(name)
-- A job that refers to it, to be named in the refusal.
select name from foliot.jobs where calendar = :name::text order by name limit 1
