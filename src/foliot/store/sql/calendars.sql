-- Exclusion calendars: named, and shared by the jobs that refer to them.

-- name: put_calendar
-- Made, or changed if it says something else than before: a version is what the cursors of jobs were found under.
with clock as (
    select coalesce($3::timestamptz, clock_timestamp()) as at
), put as (
    insert into foliot.calendars as c (name, created_at, updated_at, days)
    select $1::text, at, at, $2::jsonb from clock
    on conflict (name) do update set version = c.version + 1, updated_at = excluded.updated_at, days = excluded.days
    where c.days <> excluded.days
    returning version
)
select coalesce((select version from put), (select version from foliot.calendars where name = $1::text))

-- name: make_calendar
-- Only if there is none of that name.
insert into foliot.calendars (name, created_at, updated_at, days)
select $1::text, at, at, $2::jsonb from (select coalesce($3::timestamptz, clock_timestamp()) as at) as clock
on conflict (name) do nothing
returning true

-- name: change_calendar
-- Only if it is what was read: the very calendar (a new one of its name has another beginning), in that version. What
-- says the same as before makes no new version.
update foliot.calendars
set version = version + (days <> $2::jsonb)::int, days = $2::jsonb,
    updated_at = case when days = $2::jsonb then updated_at else coalesce($3::timestamptz, clock_timestamp()) end
where name = $1::text and version = $4::bigint and created_at = $5::timestamptz
returning true

-- name: get_calendar
-- By name.
select name, version, days, created_at, updated_at from foliot.calendars where name = $1::text

-- name: list_calendars
-- All of a namespace, by name: there are few.
select name, version, days, created_at, updated_at from foliot.calendars
where foliot.namespace_of(name) = $2::text order by name limit $1::bigint

-- name: delete_calendar
-- Refused by a foreign key while a job refers to it. Given a version ($2, $3), only that.
delete from foliot.calendars
where name = $1::text and ($2::bigint is null or (version = $2::bigint and created_at = $3::timestamptz))
returning true

-- name: first_job_with
-- A job that refers to it, to be named in the refusal.
select name from foliot.jobs where calendar = $1::text order by name limit 1
