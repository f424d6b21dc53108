-- Workflows: creates parents and steps. When a run ends, the trigger store/functions/settle.sql settles its dependents
-- and its parent.

-- name: insert_parent(run_id, kind, on_failure, total, made, capacity, template, items, now)
-- First in its transaction: sent again after a lost answer, it finds its own row, and nothing is stored twice.
insert into foliot.parents (id, root_id, run_id, kind, created_at, on_failure, total, next_index, capacity, unfinished,
    template, items)
select :run_id::uuid,
    coalesce((select p.root_id from foliot.runs r join foliot.parents p on p.id = r.parent_id
        where r.id = :run_id::uuid), :run_id::uuid), :run_id::uuid, :kind::text,
            coalesce(:now::timestamptz, clock_timestamp()), :on_failure::text, :total::bigint, :made::bigint,
            :capacity::bigint, :made::bigint,
    :template::jsonb, :items::jsonb
on conflict (id) do nothing
returning true

-- name: insert_parent_run(run_id, task, queue, name, priority, payload, now, rerun_of, options, job_id)
-- The workflow's own run: it waits from the start, and no worker claims it. For a redrive, :rerun_of is the run that it
-- replaces, and :job_id the recurring job: like any rerun, it runs beside the schedule. It waits for a tick that is
-- being fired ahead of its time.
with locked as materialized (
    select id from foliot.jobs where id = :job_id::uuid for share
)
insert into foliot.runs (
    id, created_at, due_at, started_at, rank, priority, state, queue, task, name, payload, rerun_of, options, job_id,
    tick_at
)
select :run_id::uuid, at, at, at, (extract(epoch from at) * 1000000)::bigint, :priority::bigint, 'waiting',
    :queue::text, :task::text, :name::text, :payload::jsonb, :rerun_of::uuid,
    :options::jsonb, :job_id::uuid, case when :job_id::uuid is not null then at end
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock left join locked on true
returning created_at

-- name: expand_run(run_id, token, worker_id)
-- running -> waiting: the run becomes the parent of others. Only the worker that holds it may do this. Its place under
-- a concurrency limit becomes free.
with expanded as (
    update foliot.runs set state = 'waiting', worker_id = null, unmet = null
    where id = :run_id::uuid and token = :token::bigint and worker_id = :worker_id::uuid and state = 'running'
        and cancel is null
    returning options #>> '{concurrency,key}' as concurrency_key
), freed as (
    insert into foliot.turns (kind, key, look_at)
    select 'concurrency', concurrency_key, '-infinity'::timestamptz from expanded where concurrency_key is not null
)
select true from expanded

-- name: insert_steps(
--     ids, steps, tasks, queues, names, priorities, payloads, options, rules, upstreams, have_dependents, delays,
--     reruns, met_succeeded, met_failed, met_skipped, parent_id, now, aging
-- )
-- Steps with nothing to wait for are released at once. A step's delay counts from its release.
with given as (
    select g.*, g.upstream is null
            or foliot.rule_verdict(g.rule, g.unmet, g.met_succeeded, g.met_failed,
                g.met_skipped) is not distinct from 'run' as is_free
    from (
        select u.*, cardinality(u.arrows) - u.met_succeeded - u.met_failed - u.met_skipped as unmet,
            nullif(u.arrows, '{}') as upstream
        from (
            select id, step, task, queue, name, priority, payload, options, rule, arrows_text::uuid[] as arrows,
                has_dependents, delay_seconds,
                rerun_of, met_succeeded, met_failed, met_skipped, ordinal
            from unnest(
                :ids::uuid[], :steps::text[], :tasks::text[], :queues::text[], :names::text[], :priorities::bigint[],
                :payloads::jsonb[], :options::jsonb[], :rules::text[], :upstreams::text[],
                :have_dependents::boolean[], :delays::float8[], :reruns::uuid[], :met_succeeded::bigint[],
                :met_failed::bigint[], :met_skipped::bigint[]
            ) with ordinality as t (
                id, step, task, queue, name, priority, payload, options, rule, arrows_text, has_dependents,
                delay_seconds, rerun_of,
                met_succeeded, met_failed, met_skipped, ordinal
            )
        ) as u
    ) as g
), timed as (
    select g.*, at,
        case
            when is_free and not coalesce(options ? 'condition', false)
                then at + coalesce(delay_seconds, 0) * interval '1 second'
            else at
        end as due,
        options ? 'signal' as awaits_signal, foliot.has_limits(options) as is_limited,
        is_free and options ? 'condition' as is_conditional
    from given g, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
)
insert into foliot.runs (
    id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, rerun_of, parent_id,
    step, upstream,
    has_dependents, rule, unmet, met_succeeded, met_failed, met_skipped, delay_seconds
)
select id, at,
    case
        when is_free and awaits_signal and not is_conditional then at + foliot.signal_wait(options)
        else due
    end,
    (extract(epoch from due) * 1000000)::bigint - priority * :aging::bigint + ordinal, priority,
    case when not is_free then 'waiting' when is_conditional then 'held' when due > at then 'scheduled'
        when awaits_signal or is_limited then 'held' else 'ready' end,
    case when not is_free then null when is_conditional then 'condition' when due > at then null
        when awaits_signal then 'signal' when is_limited then 'limit' end,
    queue, task, name, payload, options, rerun_of, :parent_id::uuid, step, upstream, nullif(has_dependents, false),
    rule,
    case when upstream is not null then unmet end, case when upstream is not null then met_succeeded end,
    case when upstream is not null then met_failed end, case when upstream is not null then met_skipped
        end, delay_seconds
from timed
returning queue, state

-- name: forget_parents(limit, finished_before)
-- Deletes a batch of parents that ended before retention began, with the items of maps that were never created. Each is
-- locked first, which checks again that it has ended; a parent that is being run again is skipped.
with forgotten as (
    delete from foliot.parents
    where id = any (array(
        select id from foliot.parents where finished_at < :finished_before::timestamptz order by finished_at
        limit :limit::bigint for update skip locked
    ))
    returning id
), items as (
    delete from foliot.map_items where map_id = any (array(select id from forgotten))
)
select count(*) from forgotten
