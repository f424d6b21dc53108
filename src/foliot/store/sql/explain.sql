-- Explains why a run, job or queue waits: reads for one of them what the statements that move runs read. The cost is
-- bounded, however much waits.

-- name: explain_run(run_id, now)
-- One run, with the columns that decide whether it may start.
select r.id, r.name, r.task, r.queue, r.state, r.held_by, r.priority, r.rank, r.attempt, r.created_at, r.due_at,
    r.started_at, r.expires_at,
    r.options, r.cancel, r.awaits, r.unmet, r.rule, r.options #>> '{concurrency,key}' as concurrency_key,
    r.options #>> '{rate,key}' as rate_key, r.job_id, r.parent_id, r.step, r.worker_id, r.is_probe,
    exists (select from foliot.parents p where p.run_id = r.id) as is_parent, clock.at
from foliot.runs r, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where r.id = :run_id::uuid

-- name: explain_upstream(run_id, limit)
-- The runs that it still waits for, and the jobs that have not created their run yet.
(
    select u.id, coalesce(u.step, u.name, u.id::text) as name, u.state, u.created_at
    from foliot.runs r join foliot.runs u on u.id = any (r.upstream) where r.id = :run_id::uuid order by u.id
    limit :limit::bigint
)
union all
(
    select j.id, j.name, 'not fired', l.tick_at
    from foliot.links l join foliot.jobs j on j.id = l.upstream_id where l.run_id = :run_id::uuid order by j.name
    limit :limit::bigint
)

-- name: explain_children(run_id, limit)
-- The live children of a workflow or map.
select c.id, coalesce(c.step, c.name, c.id::text) as name, c.state, c.created_at
from foliot.runs c where c.parent_id = :run_id::uuid order by c.state = 'waiting', c.id limit :limit::bigint

-- name: explain_concurrency(key, rank, most)
-- The runs that hold the places of its key, and the number of runs that wait before it.
select (select count(*) from foliot.runs r
    where r.options #>> '{concurrency,key}' = :key::text and r.state in ('ready', 'running')),
    array(select r.id from foliot.runs r
        where r.options #>> '{concurrency,key}' = :key::text and r.state in ('ready', 'running') order by r.id
        limit 10),
    (
        select count(*) from (
            select from foliot.runs r
            where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = :key::text and r.rank < :rank::bigint
            limit :most::bigint
        ) as before
    )

-- name: explain_rate(key, period_seconds, rank, most, now)
-- The number of starts in the period, when the first of them leaves it, and the number of runs that wait before it.
select count(*), min(s.started_at) + :period_seconds::float8 * interval '1 second', (
        select count(*) from (
            select from foliot.runs r
            where r.held_by = 'limit' and r.options #>> '{rate,key}' = :key::text and r.rank < :rank::bigint
            limit :most::bigint
        ) as before
    )
from foliot.rate_starts s
where s.rate_key = :key::text and s.started_at > (select coalesce(:now::timestamptz, clock_timestamp())
    - :period_seconds::float8 * interval '1 second')

-- name: explain_overlap(job_id, run_id)
-- The run of the same job that blocks it.
select r.id, r.state, r.tick_at from foliot.runs r
where r.job_id = :job_id::uuid and r.id <> :run_id::uuid order by r.held_by is not null, r.tick_at limit 1

-- name: explain_pauses(queue, task, now)
-- The pauses that apply to it.
select p.kind, p.name, p.reason, p.actor, p.paused_at, p.until_at from foliot.pauses p
where (p.until_at is null or p.until_at > coalesce(:now::timestamptz, clock_timestamp()))
    and (p.kind = 'everything' or (p.kind = 'queue' and p.name = :queue::text)
        or (p.kind = 'task' and p.name = :task::text))
order by p.kind

-- name: explain_circuit(task)
-- The circuit breaker of its task.
select failures, open_until, probe_id from foliot.circuits where task = :task::text and open_until is not null

-- name: explain_queue(queue, task, rank, most, now)
-- Its queue: limits, running runs, the number of runs before it, and the workers that serve it.
select q.max_running, q.max_depth, (
        select count(*) from (select from foliot.runs r where r.state = 'running' and r.queue = :queue::text
            limit :most::bigint) as running
    ) as running, (
        select count(*) from (
            select from foliot.runs r where r.state = 'ready' and r.queue = :queue::text and r.rank < :rank::bigint
            limit :most::bigint
        ) as before
    ) as before,
    coalesce(w.serving, 0) as serving, coalesce(w.knowing, 0) as knowing, coalesce(w.draining, 0) as draining,
    coalesce(w.slots, 0) as slots, coalesce(w.busy, 0) as busy, w.workers
from (select :queue::text as name) as asked left join foliot.queues q on q.name = asked.name
left join lateral (
    select count(*) as serving, count(*) filter (where :task::text = any (tasks)) as knowing,
        count(*) filter (where draining_at is not null) as draining,
        sum((queues ->> :queue::text)::bigint) filter (where :task::text = any (tasks)
            and draining_at is null) as slots,
        sum((
            select count(*) from foliot.runs r
            where r.state = 'running' and r.worker_id = v.id and r.queue = :queue::text
        )) filter (where :task::text = any (tasks) and draining_at is null) as busy,
        array_agg(v.name order by v.name) as workers
    from foliot.workers v
    where v.queues ? :queue::text and v.expires_at > coalesce(:now::timestamptz, clock_timestamp())
) as w on true

-- name: explain_worker(worker_id, now)
-- The worker that holds it.
select name, expires_at > coalesce(:now::timestamptz, clock_timestamp()) as is_alive
from foliot.workers where id = :worker_id::uuid
