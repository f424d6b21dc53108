-- The versions of recurring jobs, also of deleted ones. The statements that make them current write them: jobs.sql.

-- name: list_versions(job_id, before, limit)
-- A page, the latest first.
select job_id, version as number, made_at, made_by, deleted_at, deleted_by, runs_left, definition ->> 'name' as name,
    definition ->> 'task' as task, definition ->> 'queue' as queue, (definition -> 'priority')::bigint as priority,
    definition -> 'schedule' as schedule, nullif(definition -> 'payload', 'null') as payload,
    nullif(definition -> 'options', 'null') as options
from foliot.job_versions
where job_id = :job_id::uuid and (:before::bigint is null or version < :before::bigint)
order by version desc limit :limit::bigint

-- name: find_deleted_job(job_id, name)
-- A deleted job by id, or the one of a name that was deleted last.
select job_id from (
    (
        select job_id, deleted_at from foliot.job_versions
        where job_id = :job_id::uuid and deleted_at is not null order by version desc limit 1
    )
    union all
    (
        select job_id, deleted_at from foliot.job_versions
        where definition ->> 'name' = :name::text and deleted_at is not null order by deleted_at desc limit 1
    )
) as found
where not exists (select from foliot.jobs where id = found.job_id)
order by deleted_at desc limit 1

-- name: list_deleted_jobs(namespace, scan, limit)
-- Those deleted last that have not been restored. Looks at :scan of all namespaces.
select v.job_id as id, v.version, v.deleted_at, v.deleted_by, v.definition ->> 'name' as name,
    v.definition -> 'schedule' as schedule
from (
    select * from foliot.job_versions where deleted_at is not null order by deleted_at desc limit :scan::bigint
) as v
where foliot.namespace_of(v.definition ->> 'name') = :namespace::text
    and not exists (select from foliot.jobs j where j.id = v.job_id)
order by v.deleted_at desc limit :limit::bigint

-- name: forget_versions(oldest_kept, limit)
-- Deletes the versions of a batch of jobs that were deleted before retention began, and have not been restored since.
with gone as materialized (
    select v.job_id from foliot.job_versions v
    where v.deleted_at < :oldest_kept::timestamptz and not exists (select from foliot.jobs j where j.id = v.job_id)
        and not exists (
            select from foliot.job_versions later
            where later.job_id = v.job_id and later.deleted_at >= :oldest_kept::timestamptz
        )
    order by v.deleted_at limit :limit::bigint for update skip locked
), forgotten as (
    delete from foliot.job_versions where job_id = any (array(select job_id from gone)) returning true
)
select count(*) from forgotten
