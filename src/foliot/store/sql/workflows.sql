-- Runs that are made of others, and runs that wait for others. What follows from an end is settled by the trigger on history: see the
-- migration that made these tables.

-- name: insert_parent
-- First in its transaction: sent again after a lost answer, it finds its own row, and nothing is stored twice.
insert into foliot.parents (id, run_id, kind, created_at, on_failure, total, next_index, capacity, unfinished, template, items)
select $1::uuid, $1::uuid, $2::text, coalesce($9::timestamptz, clock_timestamp()), $3::text, $4::bigint, $5::bigint, $6::bigint, $5::bigint,
    $7::jsonb, $8::jsonb
on conflict (id) do nothing
returning true

-- name: insert_parent_run
-- The workflow's own run: under way from the start, and nobody's to claim. Of a redrive, $8 is the run that it takes the place of.
insert into foliot.runs (id, created_at, due_at, started_at, rank, priority, state, queue, task, name, payload, rerun_of)
select $1::uuid, at, at, at, (extract(epoch from at) * 1000000)::bigint, $5::bigint, 'waiting', $3::text, $2::text, $4::text, $6::jsonb, $8::uuid
from (select coalesce($7::timestamptz, clock_timestamp()) as at) as clock
returning created_at

-- name: expand_run
-- running -> waiting: from here on the run is made of others. Only by whoever holds it.
update foliot.runs set state = 'waiting', worker_id = null, unmet = null
where id = $1::uuid and token = $2::bigint and worker_id = $3::uuid and state = 'running' and cancel is null
returning true

-- name: insert_steps
-- Those that wait for nothing, or for nothing any more, are let go at once. What a step says of a delay counts from when it is let go.
with given as (
    select g.*, g.upstream is null
            or foliot.rule_verdict(g.rule, g.unmet, g.met_succeeded, g.met_failed, g.met_skipped) is not distinct from 'run' as is_free
    from (
        select u.*, cardinality(u.arrows) - u.met_succeeded - u.met_failed - u.met_skipped as unmet, nullif(u.arrows, '{}') as upstream
        from (
            select id, step, task, queue, name, priority, payload, options, rule, arrows_text::uuid[] as arrows, has_dependents, delay_seconds,
                rerun_of, met_succeeded, met_failed, met_skipped, ordinal
            from unnest(
                $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::jsonb[], $8::jsonb[], $9::text[], $10::text[],
                $11::boolean[], $12::float8[], $13::uuid[], $14::bigint[], $15::bigint[], $16::bigint[]
            ) with ordinality as t (
                id, step, task, queue, name, priority, payload, options, rule, arrows_text, has_dependents, delay_seconds, rerun_of,
                met_succeeded, met_failed, met_skipped, ordinal
            )
        ) as u
    ) as g
), timed as (
    select g.*, at, case when is_free then at + coalesce(delay_seconds, 0) * interval '1 second' else at end as due,
        options ? 'signal' as awaits_signal, options ?| '{concurrency,rate}' as is_limited
    from given g, (select coalesce($18::timestamptz, clock_timestamp()) as at) as clock
)
insert into foliot.runs (
    id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, rerun_of, parent_id, step, upstream,
    has_dependents, rule, unmet, met_succeeded, met_failed, met_skipped, delay_seconds
)
select id, at,
    case
        when is_free and awaits_signal then at + coalesce((options #>> '{signal,timeout_seconds}')::float8, 315360000) * interval '1 second'
        else due
    end,
    (extract(epoch from due) * 1000000)::bigint - priority * $19::bigint + ordinal, priority,
    case when not is_free then 'waiting' when due > at then 'scheduled' when awaits_signal or is_limited then 'held' else 'ready' end,
    case when not is_free or due > at then null when awaits_signal then 'signal' when is_limited then 'limit' end,
    queue, task, name, payload, options, rerun_of, $17::uuid, step, upstream, nullif(has_dependents, false), rule,
    case when upstream is not null then unmet end, case when upstream is not null then met_succeeded end,
    case when upstream is not null then met_failed end, case when upstream is not null then met_skipped end, delay_seconds
from timed
returning queue, state

-- name: insert_dependencies
-- One row an arrow, for as long as the upstream lives.
insert into foliot.dependencies (upstream_id, run_id) select * from unnest($1::text::uuid[], $2::text::uuid[])

-- name: refill
-- The first items of a map; the next ones are made when these have ended.
select foliot.refill($1::uuid, coalesce($2::timestamptz, clock_timestamp()))

-- name: adopt_items
-- A map that is run again takes over from its last run: what was counted as failed is open again, and what was never made will be.
update foliot.parents p
set run_id = $2::uuid, finished_at = null, is_stopping = false, blame = null, failed = 0, cancelled = 0, skipped = 0,
    unfinished = p.failed + p.cancelled + p.skipped
from foliot.runs r
where r.id = $2::uuid and p.run_id = r.rerun_of and p.kind = 'map' and p.finished_at is not null and p.id = $1::uuid
returning p.unfinished

-- name: find_adoptable
-- The map whose items a run of it may take over: one that ended with some of them failed.
select p.id, p.failed + p.cancelled + p.skipped from foliot.runs r join foliot.parents p on p.run_id = r.rerun_of and p.kind = 'map'
where r.id = $1::uuid and p.finished_at is not null

-- name: repeat_items
-- A new run for each item that did not succeed, with what it had.
insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, rerun_of, parent_id, step)
select foliot.new_id(at), at, at, (extract(epoch from at) * 1000000)::bigint - h.priority * $2::bigint + row_number() over (), h.priority,
    case when h.options ?| '{concurrency,rate}' then 'held' else 'ready' end,
    case when h.options ?| '{concurrency,rate}' then 'limit' end,
    h.queue, h.task, h.name, h.payload, h.options - 'snoozes', h.id, h.parent_id, h.step
from (
    select distinct on (h.step) h.* from foliot.history h
    where h.parent_id = $1::uuid and h.finished_at >= (select created_at from foliot.parents where id = $1::uuid) - interval '1 day'
    order by h.step, h.finished_at desc, h.id desc
) as h, (select coalesce($3::timestamptz, clock_timestamp()) as at) as clock
where h.state <> 'succeeded'

-- name: spread_cancels
-- A run that is made of others and is asked to end asks its children to, but for those that always run, unless it is to be ended by force.
with stopping as (
    update foliot.parents p set is_stopping = true from foliot.runs r
    where r.id = p.run_id and r.cancel is not null and p.finished_at is null
        and (not p.is_stopping or r.cancel ->> 'is_forced' = 'true')
    returning p.id, r.cancel
)
update foliot.runs c set cancel = stopping.cancel
from stopping
where c.parent_id = stopping.id and c.cancel is null
    and (c.rule is distinct from 'always' or stopping.cancel ->> 'is_forced' = 'true')
returning c.worker_id

-- name: get_parent
-- A workflow or map by its id, or by that of any run of it: where it stands, and what it is made from.
select p.id, p.run_id, p.kind, p.on_failure, p.total, p.next_index, p.unfinished, p.succeeded, p.failed, p.cancelled, p.skipped,
    p.created_at, p.finished_at
from foliot.parents p where p.id = $1::uuid or p.run_id = $1::uuid
order by p.id = $1::uuid desc limit 1

-- name: list_workflows
-- Those that have begun and are no steps of others, latest first, each with its latest run. Looks at $2 parents below its cursor and says how
-- far it got.
with scanned as materialized (
    select id, run_id, kind, on_failure, total, next_index, unfinished, succeeded, failed, cancelled, skipped, created_at, finished_at
    from foliot.parents where id < $1::uuid order by id desc limit $2::bigint
)
select s.count, s.last_id, w.*
from (select count(*) as count, (array_agg(id order by id))[1] as last_id from scanned) as s left join (
    select p.*, r.name, r.state, r.reason, r.error, r.job_id, r.tick_at
    from scanned p cross join lateral (
        select name, state, null::text as reason, null::jsonb as error, job_id, tick_at
        from foliot.runs where id = p.run_id and parent_id is null
        union all
        select name, state, reason, error - 'traceback', job_id, tick_at
        from foliot.history where id = p.run_id and parent_id is null and finished_at >= p.created_at - interval '1 day'
    ) as r
    where p.kind = 'workflow' and ($3::text[] is null or r.state = any ($3::text[])) and ($4::text is null or r.name = $4::text)
    order by p.id desc limit $5::bigint
) as w on true
order by w.id desc

-- name: list_children
-- The latest run of each child, live or finished, in the order in which they were made.
with found as (
    select id, step, task, queue, state, null::text as reason, attempt, upstream, null::json as result, null::jsonb as error, due_at,
        created_at, started_at, null::timestamptz as finished_at, rerun_of, rule, unmet, held_by
    from foliot.runs where parent_id = $1::uuid
    union all
    select id, step, task, queue, state, reason, attempt, upstream, result, error - 'traceback', due_at, created_at, started_at, finished_at,
        rerun_of, null, null, null
    from foliot.history where parent_id = $1::uuid and finished_at >= $2::timestamptz
), latest as (
    select distinct on (step) * from found order by step, created_at desc, id desc
)
select l.*, case when p.id is not null then jsonb_build_object(
        'total', p.total, 'made', p.next_index, 'unfinished', p.unfinished, 'succeeded', p.succeeded, 'failed', p.failed,
        'cancelled', p.cancelled, 'skipped', p.skipped
    ) end as children
from latest l left join foliot.parents p on p.run_id = l.id
order by l.id limit $3::bigint

-- name: reopen_parent
-- A workflow that has ended is under way again under a new run; its steps that are not run again keep what they came to.
update foliot.parents
set run_id = $2::uuid, finished_at = null, is_stopping = false, blame = null, unfinished = $3::bigint,
    succeeded = $4::bigint, failed = 0, cancelled = 0, skipped = $5::bigint
where id = $1::uuid and run_id = $6::uuid and finished_at is not null
returning true

-- name: point_to_rerun
-- From the run that ended to the one that takes its place.
update foliot.history h set rerun_as = r.new_id
from unnest($1::uuid[], $2::uuid[]) as r (old_id, new_id) where h.id = r.old_id and h.finished_at >= $3::timestamptz

-- name: read_upstream
-- What a run may know of those before it: their states and results by step, or by name; and the signal that let it start.
select coalesce(h.step, h.name, h.id::text), h.state, h.result, r.signal
from foliot.runs r left join foliot.history h on h.id = any (r.upstream)
where r.id = $1::uuid
limit $2::bigint

-- name: signal_run
-- held -> ready, or on to its limits. One that comes early is kept for when it is waited for; one that comes twice changes nothing.
update foliot.runs
set signal = $2::jsonb, due_at = case when held_by = 'signal' then at else due_at end,
    state = case
        when held_by is distinct from 'signal' then state when concurrency_key is null and rate_key is null then 'ready' else 'held'
    end,
    held_by = case when held_by is distinct from 'signal' then held_by when concurrency_key is not null or rate_key is not null then 'limit' end
from (select coalesce($3::timestamptz, clock_timestamp()) as at) as clock
where id = $1::uuid and options ? 'signal' and signal is null and state in ('waiting', 'held') and cancel is null
returning queue, state

-- name: time_out_signals
-- held -> ready for those whose signal did not come in time: they start, and see that it did not.
update foliot.runs
set signal = '{"timed_out": true}', held_by = case when concurrency_key is not null or rate_key is not null then 'limit' end,
    state = case when concurrency_key is null and rate_key is null then 'ready' else 'held' end
where id = any (array(
    select id from foliot.runs where held_by = 'signal' and due_at <= coalesce($2::timestamptz, clock_timestamp())
    order by due_at limit $1::bigint for update skip locked
))
returning queue

-- name: forget_parents
-- Those that ended before retention began, some at a time.
delete from foliot.parents
where id = any (array(select id from foliot.parents where finished_at < $2::timestamptz order by finished_at limit $1::bigint))

-- name: find_stuck
-- What should not be there: runs that wait for fewer than they count, or for what has ended, and parents that count children they do not
-- have. Looked for now and then; anything found is a fault of ours.
select 'dependent', r.id from foliot.runs r
where r.state = 'waiting' and r.unmet is not null and r.created_at < coalesce($1::timestamptz, clock_timestamp()) - interval '10 seconds'
    and r.unmet <> (
        select count(*) from foliot.dependencies d join foliot.runs u on u.id = d.upstream_id
        where d.run_id = r.id
    )
union all
select 'parent', p.id from foliot.parents p
where p.finished_at is null and p.created_at < coalesce($1::timestamptz, clock_timestamp()) - interval '10 seconds'
    and p.unfinished <> (select count(*) from foliot.runs c where c.parent_id = p.id)
limit 100
