-- Named calendars, shared by the jobs that refer to them.

-- fragment: calendar_columns
-- A calendar, and how many jobs use it, counted up to a limit.
name, version, days, created_at, updated_at,
    (
        select count(*) from (
            select from foliot.jobs j where j.calendar = calendars.name limit :most::bigint
        ) as counted
    ) as jobs

-- name: put_calendar(name, days, now)
-- Creates the calendar, or stores a new version if its days have changed. The cursors of jobs record that version.
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
-- Creates the calendar only if the name is free.
insert into foliot.calendars (name, created_at, updated_at, days)
select :name::text, at, at, :days::jsonb from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
on conflict (name) do nothing
returning true

-- name: change_calendar(name, days, now, version, created_at)
-- Changes only the version that the caller has read. `created_at` tells it apart from a new calendar of the same name.
-- Equal days make no new version.
update foliot.calendars
set version = version + (days <> :days::jsonb)::int, days = :days::jsonb,
    updated_at = case when days = :days::jsonb then updated_at else coalesce(:now::timestamptz, clock_timestamp()) end
where name = :name::text and version = :version::bigint and created_at = :created_at::timestamptz
returning true

-- name: get_calendar(name, most)
-- By name.
select {{calendar_columns}}
from foliot.calendars where name = :name::text

-- name: list_calendars(limit, namespace, most)
-- All calendars of a namespace, by name. There are few.
select {{calendar_columns}}
from foliot.calendars
where foliot.namespace_of(name) = :namespace::text order by name limit :limit::bigint

-- name: delete_calendar(name, version, created_at)
-- A foreign key rejects it while a job refers to the calendar. If a version is given (:version, :created_at), only that
-- version is deleted.
delete from foliot.calendars
where name = :name::text and (:version::bigint is null
    or (version = :version::bigint and created_at = :created_at::timestamptz))
returning true

-- name: first_job_with(name)
-- A job that refers to the calendar, for the error message.
select name from foliot.jobs where calendar = :name::text order by name limit 1
