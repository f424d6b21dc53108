-- Makes scheduled runs ready when they are due, and finds the queues with ready runs.

-- name: promote_due_runs(limit, now)
-- scheduled -> ready, or -> held if the run has a limit, oldest first. By ctid, as claims do.
update foliot.runs
set state = case when foliot.has_limits(options) then 'held' else 'ready' end,
    held_by = case when foliot.has_limits(options) then 'limit' end, awaits = null
where ctid = any (array(
    select ctid from foliot.runs
    where state = 'scheduled' and due_at <= (select coalesce(:now::timestamptz, clock_timestamp()))
    order by due_at
    limit :limit::bigint
    for update skip locked
))
returning queue

-- name: seconds_until_due(now)
-- Seconds until the next scheduled run is due, or null.
select extract(epoch from min(due_at) - coalesce(:now::timestamptz, clock_timestamp()))::float8 from foliot.runs
where state = 'scheduled'

-- name: ready_queues(limit)
-- Queues with ready runs. Takes one index lookup for each queue, however many runs are ready.
with recursive lines as (
    (select queue from foliot.runs where state = 'ready' order by queue, rank limit 1)
    union all
    select (select r.queue from foliot.runs r where r.state = 'ready' and r.queue > lines.queue order by r.queue, r.rank
        limit 1)
    from lines where lines.queue is not null
)
select queue from lines where queue is not null limit :limit::bigint
