-- Shows workflows, maps and their children.

-- name: get_parent(run_id)
-- A workflow or map, by its own id or by the id of its latest run.
select p.id, p.run_id, p.kind, p.on_failure, p.total, p.next_index, p.unfinished, p.succeeded, p.failed, p.cancelled,
    p.skipped,
    p.created_at, p.finished_at
from foliot.parents p where p.id = :run_id::uuid or p.run_id = :run_id::uuid
order by p.id = :run_id::uuid desc limit 1

-- name: list_workflows(before, scan, states, name, limit, namespace, qualified_name)
-- Workflows that have begun and are not steps of others, latest first, each with its latest run. Looks at :scan parents
-- below its cursor, and reports how far it got.
with scanned as materialized (
    select id, run_id, kind, on_failure, total, next_index, unfinished, succeeded, failed, cancelled, skipped,
        created_at, finished_at
    from foliot.parents where id < :before::uuid order by id desc limit :scan::bigint
)
select s.count, s.last_id, w.*
from (select count(*) as count, (array_agg(id order by id))[1] as last_id from scanned) as s left join (
    select p.*, r.name, r.state, r.reason, r.error, r.job_id, r.tick_at
    from scanned p cross join lateral (
        select name, state, null::text as reason, null::jsonb as error, job_id, tick_at, queue
        from foliot.runs where id = p.run_id and parent_id is null
        union all
        select name, state, reason, error - 'traceback', job_id, tick_at, queue
        from foliot.history where id = p.run_id and parent_id is null and finished_at >= p.created_at - interval '1 day'
    ) as r
    where p.kind = 'workflow' and (:states::text[] is null or r.state = any (:states::text[]))
        and (:name::text is null or r.name in (:name::text, :qualified_name::text))
        and foliot.namespace_of(r.queue) = :namespace::text
    order by p.id desc limit :limit::bigint
) as w on true
order by w.id desc

-- name: list_children(parent_id, since, limit)
-- The latest run of each child, live or finished, in order of creation.
with found as (
    select id, step, task, queue, state, null::text as reason, attempt, upstream, null::json as result,
        null::jsonb as error, due_at,
        created_at, started_at, null::timestamptz as finished_at, rerun_of, rule, unmet, held_by
    from foliot.runs where parent_id = :parent_id::uuid
    union all
    select id, step, task, queue, state, reason, attempt, upstream, result, error - 'traceback', due_at, created_at,
        started_at, finished_at,
        rerun_of, null, null, null
    from foliot.history where parent_id = :parent_id::uuid and finished_at >= :since::timestamptz
), latest as (
    select distinct on (step) * from found order by step, created_at desc, id desc
)
select l.*, case when p.id is not null then jsonb_build_object(
        'total', p.total, 'made', p.next_index, 'unfinished', p.unfinished, 'succeeded', p.succeeded, 'failed',
        p.failed,
        'cancelled', p.cancelled, 'skipped', p.skipped
    ) end as children
from latest l left join foliot.parents p on p.run_id = l.id
order by l.id limit :limit::bigint
