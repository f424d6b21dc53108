-- Runs that wait for other runs.

-- name: insert_dependencies(upstream_ids, run_ids)
-- One row for each edge. It is deleted when the upstream run ends.
insert into foliot.dependencies (upstream_id, run_id) select *
from unnest(:upstream_ids::text::uuid[], :run_ids::text::uuid[])

-- name: mark_followed(run_ids)
-- Locks and marks the live runs among these, so that their end is reported to their dependents. A session that is
-- ending one of them waits for this transaction.
update foliot.runs set has_dependents = true
where id = any (array(select id from foliot.runs where id = any (:run_ids::uuid[]) order by id for update))
returning id

-- name: insert_dependent(
--     run_id, task, queue, name, priority, due_at, delay_seconds, payload, options, expires_at, upstream_ids, aging,
--     now, finished_from
-- )
-- A run that waits for others. With a future time, it also waits for that.
insert into foliot.runs (
    id, created_at, due_at, rank, priority, state, queue, task, name, payload, options, expires_at, upstream, rule,
    unmet
)
select :run_id::uuid, at, due, (extract(epoch from due) * 1000000)::bigint - :priority::bigint * :aging::bigint,
    :priority::bigint, 'waiting', :queue::text, :task::text,
    :name::text, :payload::jsonb, :options::jsonb, :expires_at::timestamptz, :upstream_ids::uuid[], 'all_success',
    cardinality(:upstream_ids::uuid[])
from (
    select at, greatest(at, coalesce(:due_at::timestamptz, at + :delay_seconds::float8 * interval '1 second',
        at)) as due
    from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
) as timed
where not exists (select from foliot.history h
    where h.id = :run_id::uuid and h.finished_at >= :finished_from::timestamptz)
on conflict (id) do nothing
returning true

-- name: settle_ended(run_ids, now)
-- Counts upstream runs that have ended already. Returns which ids it found, so that the caller can reject ids that
-- never existed.
with found as (
    select id, state,
        case when state = 'skipped' then error ->> 'upstream'
            when state <> 'succeeded' then coalesce(step, name, id::text) end as blame
    from foliot.history where id = any (:run_ids::uuid[])
), settled as (
    select foliot.settle_endings(array_agg(row(id, state, null, blame, true)::foliot.ending),
        coalesce(:now::timestamptz, clock_timestamp()))
    from found having count(*) > 0
)
select array(select id from found), (select count(*) from settled)
