-- Failed runs, and new runs in the place of finished ones.

-- name: list_dead_letters
-- Latest failure first. Looks at $4 rows below its cursor at the most, and says how far it got.
with scanned as materialized (
    select id, name, task, queue, reason, attempt, worker_id, job_id, rerun_of, rerun_as, error, fingerprint, created_at, finished_at
    from foliot.history
    where state = 'failed' and finished_at >= $1::timestamptz and finished_at <= $2::timestamptz
        and (finished_at, id) < ($2::timestamptz, $3::uuid)
    order by finished_at desc, id desc limit $4::bigint
)
select s.count, s.finished_at as last_at, s.id as last_id, w.*
from (
    select count(*) as count, (array_agg(finished_at order by finished_at, id))[1] as finished_at, (array_agg(id order by finished_at, id))[1] as id
    from scanned
) as s left join (
    select id, name, task, queue, reason, attempt, worker_id, job_id, rerun_of, rerun_as, error - 'traceback' as error,
        coalesce(fingerprint, '') as fingerprint, created_at, finished_at
    from scanned
    where ($5::text is null or task = $5::text)
        and ($6::text is null or queue = $6::text)
        and ($7::text is null or coalesce(fingerprint, '') = $7::text)
        and ($8::boolean or rerun_as is null)
        and foliot.namespace_of(queue) = $10::text
    order by finished_at desc, id desc limit $9::bigint
) as w on true
order by w.finished_at desc, w.id desc

-- name: group_dead_letters
-- The latest $3 of them by what they have in common, the most frequent first.
with scanned as materialized (
    select id, task, queue, rerun_as, fingerprint, finished_at
    from foliot.history
    where state = 'failed' and finished_at >= $1::timestamptz and finished_at < $2::timestamptz
    order by finished_at desc, id desc limit $3::bigint
), grouped as (
    select coalesce(fingerprint, '') as fingerprint, count(*) as count, min(finished_at) as first_at, max(finished_at) as last_at,
        (array_agg(id order by finished_at desc, id desc))[1] as sample_id
    from scanned
    where ($4::text is null or task = $4::text) and ($5::text is null or queue = $5::text) and ($6::boolean or rerun_as is null)
        and foliot.namespace_of(queue) = $8::text
    group by 1 order by 2 desc, 4 desc limit $7::bigint
)
select (select count(*) from scanned) as scanned, g.fingerprint, g.count, g.first_at, g.last_at, g.sample_id, h.task, h.queue,
    h.error ->> 'kind' as kind, h.error ->> 'message' as message
from (select) as always left join grouped g on true
left join foliot.history h on h.id = g.sample_id and h.finished_at = g.last_at
order by g.count desc, g.last_at desc

-- name: rerun_runs
-- New runs that point back at finished ones, which are marked: a dead letter that has been replayed is not replayed
-- again, unless it is asked for ($5). Sent again after a lost answer, it finds its own marks and what it made, live or
-- finished. What belongs to a recurring job goes beside its schedule, as a run by hand does; a tick that is being fired
-- ahead of its instant is waited for. What waited for a signal waits for one again. $8: how far apart they are, from
-- $11 on. How often the old one had been put off does not count for the new one.
with given as (
    select * from unnest($1::uuid[], $2::uuid[]) with ordinality as g (old_id, new_id, ordinal)
), marked as (
    update foliot.history h set rerun_as = g.new_id
    from given g
    where h.id = g.old_id and h.finished_at >= $3::timestamptz and ($4::boolean or h.state = 'failed')
        and ($5::boolean or h.rerun_as is null or h.rerun_as = g.new_id) and foliot.namespace_of(h.queue) = $12::text
    returning h.id, g.new_id, g.ordinal, h.priority, h.queue, h.task, h.name, h.payload, nullif(h.options - 'snoozes', '{}') as options, h.job_id
), locked as (
    select id from foliot.jobs where id in (select job_id from marked) order by id for share
), timed as (
    select m.*, clock.at, clock.at + ($11::float8 + (row_number() over (order by m.ordinal) - 1) * $8::float8) * interval '1 second' as due
    from marked m left join locked on locked.id = m.job_id, (select coalesce($9::timestamptz, clock_timestamp()) as at) as clock
), made as (
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, job_id, tick_at, rerun_of
    )
    select new_id, at, due + case when options ? 'signal' then foliot.signal_wait(options) else interval '0' end, (extract(epoch from due) * 1000000)::bigint - priority * $10::bigint + ordinal, priority,
        case when options ? 'signal' then 'held' when due > at then 'scheduled' when options ?| '{concurrency,rate}' then 'held' else 'ready' end,
        case when options ? 'signal' then 'signal' when due <= at and options ?| '{concurrency,rate}' then 'limit' end, queue, task, name, coalesce($6::jsonb, payload), options, job_id,
        case when job_id is not null then due end, id
    from timed t
    where not exists (select from foliot.history h where h.id = t.new_id and h.finished_at >= $7::timestamptz)
    on conflict (id) do nothing
)
select id, new_id, queue from timed order by ordinal

-- name: find_dead_letters
-- Which of these are dead letters that may be replayed, and the task of each.
select id, task from foliot.history
where id = any ($1::uuid[]) and finished_at >= $2::timestamptz and state = 'failed' and ($3::boolean or rerun_as is null)
    and foliot.namespace_of(queue) = $4::text
