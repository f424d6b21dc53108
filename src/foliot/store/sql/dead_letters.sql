-- Failed runs, and new runs in the place of finished ones.

-- name: list_dead_letters(
--     since, before_at, before_id, scan, task, queue, fingerprint, is_rerun_included, limit, namespace
-- )
-- Latest failure first. Looks at :scan rows below its cursor at the most, and says how far it got.
with scanned as materialized (
    select id, name, task, queue, reason, attempt, worker_id, job_id, rerun_of, rerun_as, error, fingerprint,
        created_at, finished_at
    from foliot.history
    where state = 'failed' and finished_at >= :since::timestamptz and finished_at <= :before_at::timestamptz
        and (finished_at, id) < (:before_at::timestamptz, :before_id::uuid)
    order by finished_at desc, id desc limit :scan::bigint
)
select s.count, s.finished_at as last_at, s.id as last_id, w.*
from (
    select count(*) as count, (array_agg(finished_at order by finished_at, id))[1] as finished_at,
        (array_agg(id order by finished_at, id))[1] as id
    from scanned
) as s left join (
    select id, name, task, queue, reason, attempt, worker_id, job_id, rerun_of, rerun_as, error - 'traceback' as error,
        coalesce(fingerprint, '') as fingerprint, created_at, finished_at
    from scanned
    where (:task::text is null or task = :task::text)
        and (:queue::text is null or queue = :queue::text)
        and (:fingerprint::text is null or coalesce(fingerprint, '') = :fingerprint::text)
        and (:is_rerun_included::boolean or rerun_as is null)
        and foliot.namespace_of(queue) = :namespace::text
    order by finished_at desc, id desc limit :limit::bigint
) as w on true
order by w.finished_at desc, w.id desc

-- name: group_dead_letters(since, until, scan, task, queue, is_rerun_included, limit, namespace)
-- The latest :scan of them by what they have in common, the most frequent first.
with scanned as materialized (
    select id, task, queue, rerun_as, fingerprint, finished_at
    from foliot.history
    where state = 'failed' and finished_at >= :since::timestamptz and finished_at < :until::timestamptz
    order by finished_at desc, id desc limit :scan::bigint
), grouped as (
    select coalesce(fingerprint, '') as fingerprint, count(*) as count, min(finished_at) as first_at,
        max(finished_at) as last_at,
        (array_agg(id order by finished_at desc, id desc))[1] as sample_id
    from scanned
    where (:task::text is null or task = :task::text) and (:queue::text is null or queue = :queue::text)
        and (:is_rerun_included::boolean or rerun_as is null)
        and foliot.namespace_of(queue) = :namespace::text
    group by 1 order by 2 desc, 4 desc limit :limit::bigint
)
select (select count(*) from scanned) as scanned, g.fingerprint, g.count, g.first_at, g.last_at, g.sample_id, h.task,
    h.queue,
    h.error ->> 'kind' as kind, h.error ->> 'message' as message
from (select) as always left join grouped g on true
left join foliot.history h on h.id = g.sample_id and h.finished_at = g.last_at
order by g.count desc, g.last_at desc

-- name: rerun_runs(
--     old_ids, new_ids, finished_from, is_any_state, is_repeated, payload, made_from, apart_seconds, now, aging,
--     first_seconds, namespace
-- )
-- New runs that point back at finished ones, which are marked: a dead letter that has been replayed is not replayed
-- again, unless it is asked for (:is_repeated). Sent again after a lost answer, it finds its own marks and what it
-- made, live or finished. What belongs to a recurring job goes beside its schedule, as a run by hand does; a tick that
-- is being fired ahead of its instant is waited for. What waited for a signal waits for one again. :apart_seconds: how
-- far apart they are, from :first_seconds on. How often the old one had been put off does not count for the new one.
with given as (
    select * from unnest(:old_ids::uuid[], :new_ids::uuid[]) with ordinality as g (old_id, new_id, ordinal)
), marked as (
    update foliot.history h set rerun_as = g.new_id
    from given g
    where h.id = g.old_id and h.finished_at >= :finished_from::timestamptz
        and (:is_any_state::boolean or h.state = 'failed')
        and (:is_repeated::boolean or h.rerun_as is null or h.rerun_as = g.new_id)
        and foliot.namespace_of(h.queue) = :namespace::text
    returning h.id, g.new_id, g.ordinal, h.priority, h.queue, h.task, h.name, h.payload,
        nullif(h.options - 'snoozes', '{}') as options, h.job_id
), locked as (
    select id from foliot.jobs where id in (select job_id from marked) order by id for share
), timed as (
    select m.*, clock.at, clock.at + (:first_seconds::float8
        + (row_number() over (order by m.ordinal) - 1) * :apart_seconds::float8) * interval '1 second' as due
    from marked m left join locked on locked.id = m.job_id, (select coalesce(:now::timestamptz,
        clock_timestamp()) as at) as clock
), made as (
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, job_id, tick_at,
        rerun_of
    )
    select new_id, at, due + case when options ? 'signal' then foliot.signal_wait(options) else interval '0' end,
        (extract(epoch from due) * 1000000)::bigint - priority * :aging::bigint + ordinal, priority,
        case when options ? 'signal' then 'held' when due > at then 'scheduled'
            when foliot.has_limits(options) then 'held' else 'ready' end,
        case when options ? 'signal' then 'signal' when due <= at and foliot.has_limits(options) then 'limit'
            end, queue, task, name, coalesce(:payload::jsonb, payload), options, job_id,
        case when job_id is not null then due end, id
    from timed t
    where not exists (select from foliot.history h where h.id = t.new_id and h.finished_at >= :made_from::timestamptz)
    on conflict (id) do nothing
)
select id, new_id, queue from timed order by ordinal

-- name: find_dead_letters(run_ids, finished_from, is_rerun_included, namespace)
-- Which of these are dead letters that may be replayed, and the task of each.
select id, task from foliot.history
where id = any (:run_ids::uuid[]) and finished_at >= :finished_from::timestamptz and state = 'failed'
    and (:is_rerun_included::boolean or rerun_as is null)
    and foliot.namespace_of(queue) = :namespace::text
