-- Series of single jobs for /metrics. One process at a time adds to them, in the order in which runs ended.

-- name: list_tagged_endings(after_at, after_id, until, limit, tag)
-- Looks through the endings after a place (:limit), and returns those of jobs with a tag. The last ending is returned
-- in any case, as the place to continue from; `looked_at` is the number of all.
with page as materialized (
    select id, finished_at, state, started_at,
        case when job_id is not null then coalesce(name, task) else task end as job,
        coalesce(options -> 'tags' ? :tag::text, false) as is_tagged
    from foliot.history
    where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
        and finished_at < :until::timestamptz
    order by finished_at, id limit :limit::bigint
), numbered as (
    select *, row_number() over (order by finished_at, id) as place, count(*) over () as looked_at from page
)
select id, finished_at, job, state, extract(epoch from finished_at - started_at)::float8 as seconds, is_tagged,
    looked_at
from numbered where is_tagged or place = looked_at
order by finished_at, id

-- name: add_to_job_series(owner, after_at, after_id, at, id, counted, most)
-- Fenced by the owner of the export and by the place up to which it has counted, so nothing is counted twice. New jobs
-- get series as long as there are fewer than :most. Returns the endings of jobs that got none.
with advanced as (
    update foliot.exports set at = :at::timestamptz, id = :id::uuid
    where name = 'job_series' and owner = :owner::uuid
        and (at, id) = (:after_at::timestamptz, :after_id::uuid)
    returning name
), counted as (
    select c.*, s.job is not null as is_known
    from jsonb_to_recordset(:counted::text::jsonb) as c (
        job text, succeeded bigint, failed bigint, cancelled bigint, skipped bigint, seconds double precision,
        buckets bigint[], succeeded_at timestamptz, ended_at timestamptz
    )
    cross join advanced
    left join foliot.job_series s on s.job = c.job
), ranked as (
    select *, row_number() over (partition by is_known order by job) as place from counted
), kept as (
    select * from ranked
    where is_known or place <= :most::bigint - (select count(*) from foliot.job_series)
), stored as (
    insert into foliot.job_series as s (
        job, succeeded, failed, cancelled, skipped, seconds, buckets, succeeded_at, ended_at
    )
    select job, succeeded, failed, cancelled, skipped, seconds, buckets, succeeded_at, ended_at from kept order by job
    on conflict (job) do update set
        succeeded = s.succeeded + excluded.succeeded, failed = s.failed + excluded.failed,
        cancelled = s.cancelled + excluded.cancelled, skipped = s.skipped + excluded.skipped,
        seconds = s.seconds + excluded.seconds,
        buckets = array(
            select a + b from unnest(s.buckets, excluded.buckets) with ordinality as u (a, b, place) order by place
        ),
        succeeded_at = greatest(s.succeeded_at, excluded.succeeded_at), ended_at = excluded.ended_at
    returning job
)
select coalesce(sum(succeeded + failed + cancelled + skipped), 0)::bigint
from counted where job not in (select job from stored)

-- name: forget_job_series(before)
-- Jobs that have not ended since then make room for others.
delete from foliot.job_series where ended_at < :before::timestamptz

-- name: list_job_series
-- All series.
select job, succeeded, failed, cancelled, skipped, seconds, buckets, succeeded_at, ended_at
from foliot.job_series order by job
