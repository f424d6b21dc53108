-- Cursors to move after a calendar or the time zone rules have changed.

-- name: stale_jobs(limit)
-- Jobs whose next tick was found under an older version of their calendar, or a newer one. Two ranges, because an index
-- can't search for "is not equal".
select j.id from foliot.calendars c cross join lateral (
    (select id from foliot.jobs where calendar = c.name and calendar_version < c.version limit :limit::bigint)
    union all
    (select id from foliot.jobs where calendar = c.name and calendar_version > c.version limit :limit::bigint)
) as j limit :limit::bigint

-- name: wall_clock_jobs(shards, after, limit)
-- A page of jobs by id, reduced to those of these shards that fire at a local time of day. One pass over the table
-- serves all shards of a node. The last row holds the last id of the page.
with page as materialized (
    select id, shard, due_bucket, next_at, utc_offset, schedule from foliot.jobs where id > :after::uuid order by id
    limit :limit::bigint
)
select id, next_at, utc_offset, coalesce(schedule ->> 'timezone', 'UTC') from page
where shard = any (:shards::bigint[]) and utc_offset is not null and due_bucket is not null
union all
(select id, null, null, null from page order by id desc limit 1)

-- name: replan_job(job_id, version, next_at_before, next_at, fire_at, utc_offset, found_under)
-- Moves the cursor from where it was read, unless somebody has edited the job.
update foliot.jobs
set next_at = :next_at::timestamptz, fire_at = case when paused_at is null
    and coalesce(runs_left, 1) > 0 then :fire_at::timestamptz end,
    utc_offset = :utc_offset::bigint, calendar_version = :found_under::bigint
where id = :job_id::uuid and version = :version::bigint and next_at is not distinct from :next_at_before::timestamptz
returning true
