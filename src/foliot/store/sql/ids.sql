-- Ids by their beginnings.

-- name: find_ids(low, high, finished_from, limit)
-- Runs and recurring jobs whose ids lie in a range, a bounded number of each kind. Each part walks along an index.
select f.id, f.kind, f.name, f.task, f.queue, f.state, f.created_at, f.job_id
from (
    (
        select id, 'run' as kind, coalesce(step, name) as name, task, queue, state, created_at, job_id
        from foliot.runs
        where id between :low::uuid and :high::uuid order by id limit :limit::bigint
    )
    union all
    (
        select id, 'run', coalesce(step, name), task, queue, state, created_at, job_id
        from foliot.history
        where id between :low::uuid and :high::uuid and finished_at >= :finished_from::timestamptz
        order by id limit :limit::bigint
    )
    union all
    (
        select id, 'job', name, task, queue, case when paused_at is null then 'active' else 'paused' end, created_at, id
        from foliot.jobs where id between :low::uuid and :high::uuid order by id limit :limit::bigint
    )
) as f
order by f.id
