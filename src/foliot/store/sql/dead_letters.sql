-- Failed runs, and reruns of finished runs.

-- name: list_dead_letters(
--     since, before_at, before_id, scan, task, queue, fingerprint, is_rerun_included, is_dismissed_included, limit,
--     namespace
-- )
-- Latest failure first. Looks at :scan rows below its cursor, and reports how far it got.
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
    select s.id, s.name, s.task, s.queue, s.reason, s.attempt, s.worker_id, s.job_id, s.rerun_of, s.rerun_as,
        s.error - 'traceback' as error, coalesce(s.fingerprint, '') as fingerprint, s.created_at, s.finished_at
    from scanned s
    left join foliot.dead_groups d on d.namespace = :namespace::text and d.fingerprint = coalesce(s.fingerprint, '')
    where (:task::text is null or s.task = :task::text)
        and (:queue::text is null or s.queue = :queue::text)
        and (:fingerprint::text is null or coalesce(s.fingerprint, '') = :fingerprint::text)
        and (:is_rerun_included::boolean or s.rerun_as is null)
        and (:is_dismissed_included::boolean or d.dismissed_until is null or s.finished_at > d.dismissed_until)
        and foliot.namespace_of(s.queue) = :namespace::text
    order by s.finished_at desc, s.id desc limit :limit::bigint
) as w on true
order by w.finished_at desc, w.id desc

-- name: group_dead_letters(
--     since, until, scan, task, queue, fingerprint, is_rerun_included, is_dismissed_included, limit, namespace,
--     parts, now
-- )
-- Groups the latest :scan failures by fingerprint, the most frequent first. The trend counts the failures of each group
-- in :parts parts of the time.
with clock as materialized (
    select least(coalesce(:now::timestamptz, clock_timestamp()), :until::timestamptz) as at
), scanned as materialized (
    select id, task, queue, rerun_as, fingerprint, finished_at
    from foliot.history
    where state = 'failed' and finished_at >= :since::timestamptz and finished_at < :until::timestamptz
    order by finished_at desc, id desc limit :scan::bigint
), fitting as materialized (
    select coalesce(s.fingerprint, '') as fingerprint, s.id, s.finished_at, least(:parts::bigint - 1, floor(
        extract(epoch from s.finished_at - :since::timestamptz)
        / greatest(extract(epoch from clock.at - :since::timestamptz), 0.001) * :parts::bigint))::bigint as part
    from scanned s cross join clock
    left join foliot.dead_groups d on d.namespace = :namespace::text and d.fingerprint = coalesce(s.fingerprint, '')
    where (:task::text is null or s.task = :task::text) and (:queue::text is null or s.queue = :queue::text)
        and (:fingerprint::text is null or coalesce(s.fingerprint, '') = :fingerprint::text)
        and (:is_rerun_included::boolean or s.rerun_as is null)
        and (:is_dismissed_included::boolean or d.dismissed_until is null or s.finished_at > d.dismissed_until)
        and foliot.namespace_of(s.queue) = :namespace::text
), grouped as (
    select fingerprint, count(*) as count, min(finished_at) as first_at, max(finished_at) as last_at,
        (array_agg(id order by finished_at desc, id desc))[1] as sample_id
    from fitting
    group by 1 order by 2 desc, 4 desc limit :limit::bigint
)
select (select count(*) from scanned) as scanned, g.fingerprint, g.count, g.first_at, g.last_at, g.sample_id, h.task,
    h.queue, h.error ->> 'kind' as kind, h.error ->> 'message' as message, array(
        select count(f.id) from generate_series(0, :parts::bigint - 1) as p (part)
        left join fitting f on f.part = p.part and f.fingerprint = g.fingerprint
        group by p.part order by p.part
    ) as trend, d.note, d.noted_by, d.noted_at, d.dismissed_until, d.dismissed_by
from (select) as always left join grouped g on true
left join foliot.history h on h.id = g.sample_id and h.finished_at = g.last_at
left join foliot.dead_groups d on d.namespace = :namespace::text and d.fingerprint = g.fingerprint
order by g.count desc, g.last_at desc

-- name: put_note(namespace, fingerprint, note, actor, now)
-- Null removes the note.
insert into foliot.dead_groups (namespace, fingerprint, note, noted_by, noted_at)
select :namespace::text, :fingerprint::text, :note::text, :actor::text, coalesce(:now::timestamptz, clock_timestamp())
on conflict (namespace, fingerprint) do update
set note = excluded.note, noted_by = excluded.noted_by, noted_at = excluded.noted_at

-- name: put_dismissal(namespace, fingerprint, until, actor)
-- Null lists all of its failures again.
insert into foliot.dead_groups (namespace, fingerprint, dismissed_until, dismissed_by)
values (:namespace::text, :fingerprint::text, :until::timestamptz, :actor::text)
on conflict (namespace, fingerprint) do update
set dismissed_until = excluded.dismissed_until, dismissed_by = excluded.dismissed_by

-- name: rerun_runs(
--     old_ids, new_ids, finished_from, is_any_state, is_repeated, payload, made_from, apart_seconds, now, aging,
--     first_seconds, namespace, keeps_checkpoints
-- )
-- Creates a new run for each finished run, and links the two. A dead letter is replayed only once, unless :is_repeated.
-- A repetition after a lost answer finds its own links and runs, live or finished.
--
-- A run of a recurring job runs beside the schedule, as a triggered run does. It waits for a tick that is being fired
-- ahead of its time. A run that waited for a signal waits for a new one. Snoozes of the old run do not count. The first
-- run is due after :first_seconds, each later one :apart_seconds after the one before.
--
-- With :keeps_checkpoints, the new run has the checkpoints of the old one, except for waits that ended with an error.
-- Its token begins at 1, so that its first attempt looks for them.
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
        nullif(h.options - '{snoozes,traceparent}'::text[], '{}') as options, h.job_id
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
        rerun_of, token
    )
    select new_id, at, due + case when options ? 'signal' then foliot.signal_wait(options) else interval '0' end,
        (extract(epoch from due) * 1000000)::bigint - priority * :aging::bigint + ordinal, priority,
        case when options ? 'signal' then 'held' when due > at then 'scheduled'
            when foliot.has_limits(options) then 'held' else 'ready' end,
        case when options ? 'signal' then 'signal' when due <= at and foliot.has_limits(options) then 'limit'
            end, queue, task, name, coalesce(:payload::jsonb, payload), options, job_id,
        case when job_id is not null then due end, id, case when :keeps_checkpoints::boolean then 1 else 0 end
    from timed t
    where not exists (select from foliot.history h where h.id = t.new_id and h.finished_at >= :made_from::timestamptz)
    on conflict (id) do nothing
), kept as (
    insert into foliot.checkpoints (
        run_id, name, kind, function, token, attempt, lost, started_at, finished_at, due_at, child_id, result
    )
    select t.new_id, c.name, c.kind, c.function, 0, c.attempt, 0, c.started_at, c.finished_at, c.due_at, c.child_id,
        c.result
    from timed t join foliot.checkpoints c on c.run_id = t.id
    where :keeps_checkpoints::boolean and c.finished_at is not null and c.error is null
    on conflict (run_id, name) do nothing
)
select id, new_id, queue from timed order by ordinal

-- name: find_dead_letters(run_ids, finished_from, is_rerun_included, namespace)
-- The dead letters among these ids that may be replayed, with their tasks.
select id, task from foliot.history
where id = any (:run_ids::uuid[]) and finished_at >= :finished_from::timestamptz and state = 'failed'
    and (:is_rerun_included::boolean or rerun_as is null)
    and foliot.namespace_of(queue) = :namespace::text
