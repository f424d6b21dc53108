-- Facts that the conditions of alerts look at. Each statement reads a bounded number of rows, and runs only if a rule
-- needs it.

-- name: queue_lags(limit, now)
-- Since when the first runs of each queue have been due, how many are ready up to 1000, and how many workers serve it.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), with_ready as (
    (select queue from foliot.runs where state = 'ready' order by queue limit 1)
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > w.queue order by queue limit 1)
    from with_ready w where w.queue is not null
), named as (
    select queue from with_ready where queue is not null limit :limit::bigint
)
select n.queue, first.oldest_at, first.ready, (
        select count(*) from foliot.workers w
        where w.queues ? n.queue and w.expires_at > clock.at and w.draining_at is null
    ) as workers,
    exists (
        select from foliot.pauses p
        where ((p.kind = 'queue' and p.name = n.queue) or p.kind = 'everything')
            and (p.until_at is null or p.until_at > clock.at)
    ) as is_paused
from named n cross join clock cross join lateral (
    select min(due_at) as oldest_at, count(*) as ready from (
        select due_at from foliot.runs where state = 'ready' and queue = n.queue order by rank limit 1000
    ) as head
) as first

-- name: tasks_without_worker(head, limit, now)
-- Tasks of waiting runs that no live worker of their queue offers: among the first runs of each queue, and among the
-- runs that are parked for this reason.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), with_ready as (
    (select queue from foliot.runs where state = 'ready' order by queue limit 1)
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > w.queue order by queue limit 1)
    from with_ready w where w.queue is not null
), known as materialized (
    select distinct q.name as queue, t.name as task
    from foliot.workers w cross join jsonb_object_keys(w.queues) as q (name) cross
    join unnest(w.tasks) as t (name), clock
    where w.expires_at > clock.at
), parked as (
    (
        select queue, task from foliot.runs
        where held_by in ('pause', 'circuit', 'no_worker') order by queue, task limit 1
    )
    union all
    select next.queue, next.task from parked p cross join lateral (
        select r.queue, r.task from foliot.runs r
        where r.held_by in ('pause', 'circuit', 'no_worker') and (r.queue, r.task) > (p.queue, p.task)
        order by r.queue, r.task limit 1
    ) as next
), waiting as (
    select w.queue, first.task, min(first.due_at) as since, count(*) as number
    from (select queue from with_ready where queue is not null limit :limit::bigint) as w cross join lateral (
        select r.task, r.due_at from foliot.runs r
        where r.state = 'ready' and r.queue = w.queue order by r.rank limit :head::bigint
    ) as first
    group by 1, 2
    union all
    select p.queue, p.task, first.due_at, 1
    from (select queue, task from parked limit :limit::bigint) as p cross join lateral (
        select r.due_at from foliot.runs r
        where r.held_by in ('pause', 'circuit', 'no_worker') and r.queue = p.queue and r.task = p.task
        order by r.rank limit 1
    ) as first
)
select queue, task, min(since), sum(number)::bigint from waiting w
where not exists (select from known k where k.queue = w.queue and k.task = w.task)
group by 1, 2 order by 3 limit :limit::bigint

-- name: open_circuits(limit)
-- Tasks whose circuit is open, in all namespaces.
select task, failures, updated_at from foliot.circuits where open_until is not null order by task limit :limit::bigint

-- name: live_workers(limit, now)
-- The queues of each live worker that takes runs.
select name, array(select jsonb_object_keys(queues)) from foliot.workers
where expires_at > coalesce(:now::timestamptz, clock_timestamp()) and draining_at is null
order by id limit :limit::bigint

-- name: count_live_schedulers(now)
-- Scheduler nodes whose lease has not expired.
select count(*) from foliot.schedulers where expires_at > coalesce(:now::timestamptz, clock_timestamp())

-- name: unreplayed_failures(since, scan)
-- The latest failures that were not replayed, in groups.
select job, task, queue, tags, count(*), (array_agg(id order by finished_at desc))[1:5], min(finished_at) from (
    select id, finished_at, case when job_id is not null then name end as job, task, queue,
        (options -> 'tags')::text as tags, rerun_as
    from foliot.history where state = 'failed' and finished_at >= :since::timestamptz
    order by finished_at desc, id desc limit :scan::bigint
) as latest
where rerun_as is null group by 1, 2, 3, 4

-- name: missed_ticks(noted_from, limit)
-- Recurring jobs with a missed tick after which none has fired yet, by when the tick was noted.
select j.name, j.task, j.queue, (j.options -> 'tags')::text, m.tick_at from (
    select job_id, max(coalesce(until_at, tick_at)) as tick_at from foliot.ticks
    where noted_at >= :noted_from::timestamptz and reason = 'missed'
    group by job_id limit :limit::bigint
) as m join foliot.jobs j on j.id = m.job_id
where not exists (select from foliot.runs r where r.job_id = m.job_id and r.tick_at > m.tick_at)
    and not exists (
        select from foliot.history h
        where h.job_id = m.job_id and h.tick_at > m.tick_at and h.finished_at >= m.tick_at
    )

-- name: later_ticks(names, missed)
-- Of these jobs, those that have fired after the tick that they missed, or that are gone.
select m.name from unnest(:names::text[], :missed::timestamptz[]) as m (name, tick_at)
left join foliot.jobs j on j.name = m.name
where j.id is null or exists (select from foliot.runs r where r.job_id = j.id and r.tick_at > m.tick_at)
    or exists (
        select from foliot.history h
        where h.job_id = j.id and h.tick_at > m.tick_at and h.finished_at >= m.tick_at
    )

-- name: late_jobs(shards, late_from, each, now)
-- Jobs whose tick should have fired some seconds ago (:late_from).
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
select j.name, j.task, j.queue, j.tags, j.fire_at from clock
cross join unnest(:shards::bigint[]) as s (id) cross join lateral (
    select name, task, queue, (options -> 'tags')::text as tags, fire_at from foliot.jobs
    where shard = s.id and due_bucket <= foliot.due_bucket(clock.at)
        and fire_at < clock.at - :late_from::float8 * interval '1 second'
    order by due_bucket limit :each::bigint
) as j

-- name: job_progress(names, since, overdue_from)
-- Of each job: its live runs that were due before a time, and its latest start and success since another time.
select asked.name, j.id is not null as exists,
    live.unstarted, live.unstarted_since, live.unfinished, live.unfinished_since,
    greatest(live.started_at, ended.started_at) as started_at, ended.succeeded_at
from unnest(:names::text[], :since::timestamptz[], :overdue_from::timestamptz[]) as asked (name, since, overdue_from)
left join foliot.jobs j on j.name = asked.name
left join lateral (
    select count(*) filter (where r.started_at is null and r.due_at < asked.overdue_from) as unstarted,
        min(r.due_at) filter (where r.started_at is null and r.due_at < asked.overdue_from) as unstarted_since,
        count(*) filter (where r.due_at < asked.overdue_from) as unfinished,
        min(r.due_at) filter (where r.due_at < asked.overdue_from) as unfinished_since,
        max(r.started_at) filter (where r.started_at >= asked.since) as started_at
    from (
        select due_at, started_at from foliot.runs where job_id = j.id order by tick_at limit 1000
    ) as r
) as live on true
left join lateral (
    select max(h.started_at) filter (where h.started_at >= asked.since) as started_at,
        max(h.finished_at) filter (where h.state = 'succeeded') as succeeded_at
    from (
        select started_at, finished_at, state from foliot.history
        where job_id = j.id and finished_at >= asked.since order by tick_at desc limit 1000
    ) as h
) as ended on true

-- name: running_jobs(limit, started_before)
-- Recurring jobs with a run that has been running since before a time.
select distinct name from (
    select name from foliot.runs
    where state = 'running' and job_id is not null and started_at < :started_before::timestamptz limit :limit::bigint
) as found

-- name: latest_durations(names, since, now)
-- Of each job, how long its latest run took or takes, and the 95th percentile and number of the runs before it.
select j.name, j.task, j.queue, (j.options -> 'tags')::text, latest.id, latest.started_at, latest.seconds,
    latest.is_running, d.usual_seconds, d.number
from unnest(:names::text[]) as asked (name) join foliot.jobs j on j.name = asked.name
cross join lateral (
    (
        select r.id, r.started_at, true as is_running,
            extract(epoch from coalesce(:now::timestamptz, clock_timestamp()) - r.started_at)::float8 as seconds
        from foliot.runs r where r.job_id = j.id and r.state = 'running' order by r.started_at limit 1
    )
    union all
    (
        select h.id, h.started_at, false, extract(epoch from h.finished_at - h.started_at)::float8
        from foliot.history h
        where h.job_id = j.id and h.finished_at >= :since::timestamptz and h.started_at is not null
        order by h.tick_at desc limit 1
    )
    order by is_running desc limit 1
) as latest
cross join lateral (
    select count(*) as number,
        percentile_cont(0.95) within group (order by extract(epoch from finished_at - started_at)::float8)
            as usual_seconds
    from (
        select h.started_at, h.finished_at from foliot.history h
        where h.job_id = j.id and h.finished_at >= :since::timestamptz and h.id <> latest.id
            and h.state = 'succeeded' and h.started_at is not null
        order by h.tick_at desc limit 30
    ) as earlier
) as d

-- name: failing_archive
-- Since when the archive has failed.
select min(failing_since), min(error) from foliot.archives where failing_since is not null
