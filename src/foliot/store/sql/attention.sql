-- Things that somebody should look at: each statement reads a bounded number of rows, and none grows with history.

-- name: count_late(namespace, late_from, shards, most, now)
-- Jobs whose tick should have fired some seconds ago (:late_from), and by how much the first of them is late.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), late as (
    select j.fire_at from clock cross join unnest(:shards::bigint[]) as s (id) cross join lateral (
        select name, fire_at from foliot.jobs
        where shard = s.id and due_bucket <= foliot.due_bucket(clock.at)
            and fire_at < clock.at - :late_from::float8 * interval '1 second'
        limit :most::bigint
    ) as j
    where foliot.namespace_of(j.name) = :namespace::text
)
select count(*), extract(epoch from clock.at - min(fire_at))::float8 from clock left join late on true group by clock.at

-- name: list_failing_jobs(namespace, since, scan, limit)
-- Recurring jobs whose latest runs failed, from the latest :scan failures. `in_a_row` counts up to ten.
with failed as (
    select job_id, id, finished_at, queue from foliot.history
    where state = 'failed' and finished_at >= :since::timestamptz
    order by finished_at desc, id desc limit :scan::bigint
), candidates as (
    select job_id, count(*) as failures, max(finished_at) as failed_at,
        (array_agg(id order by finished_at desc))[1] as run_id
    from failed where job_id is not null and foliot.namespace_of(queue) = :namespace::text
    group by job_id order by 2 desc limit 50
)
select j.name, c.failures, c.failed_at, c.run_id, r.in_a_row
from candidates c join foliot.jobs j on j.id = c.job_id cross join lateral (
    select count(*) filter (where not any_good) as in_a_row from (
        select bool_or(state <> 'failed') over (order by finished_at desc, id desc) as any_good from (
            select state, finished_at, id from foliot.history
            where job_id = c.job_id and finished_at >= :since::timestamptz
            order by tick_at desc limit 10
        ) as latest
    ) as ordered
) as r
where r.in_a_row > 0
order by r.in_a_row desc, c.failures desc, j.name limit :limit::bigint

-- name: list_growing_groups(namespace, since, half, scan, limit)
-- Groups of failures that were not replayed, with more failures since :half than between :since and :half.
with failed as (
    select coalesce(fingerprint, '') as fingerprint, id, task, queue, finished_at, rerun_as from foliot.history
    where state = 'failed' and finished_at >= :since::timestamptz
    order by finished_at desc, id desc limit :scan::bigint
), grouped as (
    select fingerprint, count(*) filter (where finished_at >= :half::timestamptz) as lately,
        count(*) filter (where finished_at < :half::timestamptz) as before, max(finished_at) as last_at,
        (array_agg(id order by finished_at desc, id desc))[1] as sample_id
    from failed where rerun_as is null and foliot.namespace_of(queue) = :namespace::text group by fingerprint
)
select g.fingerprint, g.lately, g.before, g.last_at, g.sample_id, h.task, left(h.error ->> 'message', 300) as message
from grouped g join foliot.history h on h.id = g.sample_id and h.finished_at = g.last_at
where g.lately >= 3 and g.lately > g.before
order by g.lately - g.before desc, g.last_at desc limit :limit::bigint

-- name: count_failed(namespace, since, most)
-- Runs that failed since a time, up to :most of all namespaces together.
select count(*) filter (where foliot.namespace_of(queue) = :namespace::text), count(*) from (
    select queue from foliot.history where state = 'failed' and finished_at >= :since::timestamptz
    order by finished_at desc, id desc limit :most::bigint
) as latest

-- name: list_open_circuits(namespace, limit)
-- Tasks whose runs do not start because the last ones failed.
select task, failures, open_until from foliot.circuits
where open_until is not null and foliot.namespace_of(task) = :namespace::text
order by updated_at desc limit :limit::bigint

-- name: list_everything_paused(namespace, scan, limit, now)
-- Paused queues and tasks, and a pause of everything; then paused jobs.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
(
    select kind, name, paused_at, until_at, reason, actor from foliot.pauses, clock
    where (until_at is null or until_at > clock.at)
        and (kind = 'everything' or foliot.namespace_of(name) = :namespace::text)
    order by paused_at desc limit :limit::bigint
)
union all
(
    select 'job', name, paused_at, paused_until, paused_reason, paused_by from (
        select * from foliot.jobs where paused_at is not null order by name limit :scan::bigint
    ) as j
    where foliot.namespace_of(name) = :namespace::text
    limit :limit::bigint
)

-- name: list_late_workers(namespace, late_share, limit, now)
-- Workers that have sent no heartbeat for a part of their lease, and are not given up yet.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
select w.id, w.name, extract(epoch from clock.at - w.beat_at)::float8 as silent_seconds
from clock cross join foliot.workers w
where w.expires_at > clock.at and clock.at - w.beat_at > (w.expires_at - w.beat_at) * :late_share::float8
    and exists (
        select from jsonb_object_keys(w.queues) as q (name) where foliot.namespace_of(q.name) = :namespace::text
    )
order by w.beat_at limit :limit::bigint

-- name: longest_approvals(namespace, scan, limit)
-- Runs that wait for a signal, longest first.
with waiting as materialized (
    select id, name, task, queue, due_at from foliot.runs where held_by = 'signal' order by due_at limit :scan::bigint
)
select id, coalesce(name, foliot.bare(task)), due_at, count(*) over () as number
from waiting where foliot.namespace_of(queue) = :namespace::text order by due_at limit :limit::bigint

-- name: list_ended_jobs(namespace, limit, scan)
-- Jobs with an expression or a period that will never fire again, although nothing limits the number of their runs.
with over as materialized (
    select id, name, schedule, runs_left from foliot.jobs
    where due_bucket is null and paused_at is null
        and name > case when :namespace::text = 'default' then '' else :namespace::text || '/' end
    order by name limit :scan::bigint
)
select o.name from over o
where foliot.namespace_of(o.name) = :namespace::text and o.runs_left is null
    and (o.schedule ? 'cron' or o.schedule ? 'every') order by o.name limit :limit::bigint

-- name: due_schedules(namespace, until, shards, each, limit)
-- Jobs that will fire before a time, with what their ticks follow from. Of each shard, :each jobs are read, of any
-- namespace.
select j.id, j.name, j.queue, j.task, j.schedule, j.created_at, j.fire_at, j.next_at, j.runs_left, c.days,
    j.options -> 'tags' as tags
from unnest(:shards::bigint[]) as s (id) cross join lateral (
    select * from foliot.jobs
    where shard = s.id and due_bucket <= foliot.due_bucket(:until::timestamptz) and fire_at < :until::timestamptz
    order by due_bucket limit :each::bigint
) as j
left join foliot.calendars c on c.name = j.calendar
where foliot.namespace_of(j.name) = :namespace::text
order by j.fire_at, j.id limit :limit::bigint

-- name: job_durations(job_ids, since)
-- Of each job, the latest 30 runs: how many ended well, and the 95th percentile of how long they took.
select asked.id, d.number, d.seconds
from unnest(:job_ids::uuid[]) as asked (id) cross join lateral (
    select count(*) as number,
        percentile_cont(0.95) within group (order by extract(epoch from finished_at - started_at)::float8) as seconds
    from (
        select started_at, finished_at from foliot.history
        where job_id = asked.id and finished_at >= :since::timestamptz order by tick_at desc limit 30
    ) as latest
    where started_at is not null
) as d

-- name: oldest_ready_queue(namespace)
-- The queue whose first ready run in order has been due for longest.
with recursive with_ready as (
    (select queue from foliot.runs where state = 'ready' order by queue limit 1)
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > w.queue order by queue limit 1)
    from with_ready w where w.queue is not null
)
select w.queue from with_ready w cross join lateral (
    select due_at from foliot.runs where state = 'ready' and queue = w.queue order by rank limit 1
) as first
where w.queue is not null and foliot.namespace_of(w.queue) = :namespace::text
order by first.due_at limit 1

-- name: has_runs(namespace, scan)
-- Looks at :scan live and :scan finished runs only.
select exists (
        select from (select queue from foliot.runs limit :scan::bigint) as live
        where foliot.namespace_of(queue) = :namespace::text
    )
    or exists (
        select from (select queue from foliot.history limit :scan::bigint) as ended
        where foliot.namespace_of(queue) = :namespace::text
    )

-- name: past_runs(job_id, since, limit)
-- The latest runs of a job: when they started, and how long they took.
select extract(epoch from started_at)::float8, extract(epoch from finished_at - started_at)::float8 from (
    select started_at, finished_at from foliot.history
    where job_id = :job_id::uuid and finished_at >= :since::timestamptz order by tick_at desc limit :limit::bigint
) as latest
where started_at is not null
