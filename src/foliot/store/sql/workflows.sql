-- Runs that are made of others, and runs that wait for others. What follows from an end is settled by the trigger on
-- history: see the migration that made these tables.

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
-- The workflow's own run: under way from the start, and nobody's to claim. Of a redrive, :rerun_of is the run that it
-- takes the place of, and :job_id its job: it goes beside the schedule, as a rerun does; a tick that is being fired
-- ahead of its instant is waited for.
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
-- running -> waiting: from here on the run is made of others. Only by whoever holds it. Its place under a limit is free
-- again.
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
-- Those that wait for nothing, or for nothing any more, are let go at once. What a step says of a delay counts from
-- when it is let go.
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
    select g.*, at, case when is_free then at + coalesce(delay_seconds, 0) * interval '1 second' else at end as due,
        options ? 'signal' as awaits_signal, foliot.has_limits(options) as is_limited
    from given g, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
)
insert into foliot.runs (
    id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, rerun_of, parent_id,
    step, upstream,
    has_dependents, rule, unmet, met_succeeded, met_failed, met_skipped, delay_seconds
)
select id, at,
    case
        when is_free and awaits_signal then at + foliot.signal_wait(options)
        else due
    end,
    (extract(epoch from due) * 1000000)::bigint - priority * :aging::bigint + ordinal, priority,
    case when not is_free then 'waiting' when due > at then 'scheduled' when awaits_signal or is_limited then 'held'
        else 'ready' end,
    case when not is_free or due > at then null when awaits_signal then 'signal' when is_limited then 'limit' end,
    queue, task, name, payload, options, rerun_of, :parent_id::uuid, step, upstream, nullif(has_dependents, false),
    rule,
    case when upstream is not null then unmet end, case when upstream is not null then met_succeeded end,
    case when upstream is not null then met_failed end, case when upstream is not null then met_skipped
        end, delay_seconds
from timed
returning queue, state

-- name: insert_dependencies(upstream_ids, run_ids)
-- One row an arrow, for as long as the upstream lives.
insert into foliot.dependencies (upstream_id, run_id) select *
from unnest(:upstream_ids::text::uuid[], :run_ids::text::uuid[])

-- name: refill(map_id, now)
-- The first items of a map; the next ones are made when these have ended.
select foliot.refill(:map_id::uuid, coalesce(:now::timestamptz, clock_timestamp()))

-- name: find_adoptable(run_id, template, items)
-- The map whose items a run of it may take over: one that is made from the same, and of which some did not succeed. A
-- list that was made anew and became another is begun anew; so is a map that took so long that not all of these are in
-- history any more.
select p.id, p.failed + p.cancelled + p.skipped from foliot.runs r
join foliot.parents p on p.run_id = r.rerun_of and p.kind = 'map'
where r.id = :run_id::uuid and p.finished_at is not null and p.template = :template::jsonb
    and p.items is not distinct from :items::jsonb
    and (p.succeeded < p.next_index or p.next_index < p.total)
    and p.failed + p.cancelled + p.skipped = (
        select count(*) from (
            select distinct on (h.step) h.state from foliot.history h
            where h.parent_id = p.id and h.finished_at >= p.created_at - interval '1 day'
            order by h.step, h.finished_at desc, h.id desc
        ) as latest
        where latest.state <> 'succeeded'
    )

-- name: adopt_items(map_id, run_id, on_failure, capacity)
-- A map that is run again takes over from its last run: what was counted as failed is open again, and what was never
-- made will be.
update foliot.parents p
set run_id = :run_id::uuid, finished_at = null, stop = null, blame = null, failed = 0, cancelled = 0, skipped = 0,
    unfinished = p.failed + p.cancelled + p.skipped, on_failure = :on_failure::text, capacity = :capacity::bigint,
    root_id = coalesce((select o.root_id from foliot.parents o where o.id = r.parent_id), p.id)
from foliot.runs r
where r.id = :run_id::uuid and p.run_id = r.rerun_of and p.kind = 'map' and p.finished_at is not null
    and p.id = :map_id::uuid
returning p.unfinished

-- name: repeat_items(map_id, aging, now)
-- A new run for each item that did not succeed, with what it had. They are counted here, as those are that refill
-- makes.
with made as (
insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options,
    rerun_of, parent_id, step)
select foliot.new_id(at), at, at,
    (extract(epoch from at) * 1000000)::bigint - h.priority * :aging::bigint + row_number() over (), h.priority,
    case when foliot.has_limits(h.options) then 'held' else 'ready' end,
    case when foliot.has_limits(h.options) then 'limit' end,
    h.queue, h.task, h.name, h.payload, h.options - 'snoozes', h.id, h.parent_id, h.step
from (
    select distinct on (h.step) h.* from foliot.history h
    where h.parent_id = :map_id::uuid
        and h.finished_at >= (select created_at from foliot.parents where id = :map_id::uuid) - interval '1 day'
    order by h.step, h.finished_at desc, h.id desc
) as h, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where h.state <> 'succeeded'
returning id
)
insert into foliot.counted (name, value) select 'submitted', count(*) from made having count(*) > 0

-- name: mark_followed(run_ids)
-- Those of the given runs that live: from here on their end is told to whoever waits for them. Whoever ends one just
-- now has to wait for us.
update foliot.runs set has_dependents = true
where id = any (array(select id from foliot.runs where id = any (:run_ids::uuid[]) order by id for update))
returning id

-- name: insert_dependent(
--     run_id, task, queue, name, priority, due_at, delay_seconds, payload, options, expires_at, upstream_ids, aging,
--     now, finished_from
-- )
-- A run that waits for others. Due in the future, it is so in any case.
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
-- What a run waits for and has ended already counts at once. Those that never were are told.
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

-- name: spread_cancels
-- A run that is made of others and is asked to end asks its children to, but for those that always run, unless it is to
-- be ended by force. Children that somebody has in hand are stepped over, and found the next time; so are those that
-- were, when a failure stopped the others.
with asked as materialized (
    select p.id, p.root_id, coalesce(r.cancel, p.stop) as stop from foliot.runs r
    join foliot.parents p on p.run_id = r.id
    where r.cancel is not null and p.finished_at is null
    union
    select p.id, p.root_id, coalesce(r.cancel, p.stop) from foliot.parents p join foliot.runs r on r.id = p.run_id
    where p.stop is not null and p.finished_at is null
), stopping as materialized (
    select a.* from asked a
    where exists (select from foliot.parents p where p.id = a.id and p.stop is distinct from a.stop)
        or exists (
            select from foliot.runs c where c.parent_id = a.id
            and case a.stop ->> 'is_forced' when 'true' then c.cancel ->> 'is_forced' is distinct from 'true'
                else c.cancel is null and c.rule is distinct from 'always' end
        )
), roots as materialized (
    select id from foliot.parents where id = any (array(select root_id from stopping)) order by id for update
), noted as (
    update foliot.parents p set stop = s.stop from stopping s
    where p.id = s.id and p.stop is distinct from s.stop and p.finished_at is null and (select count(*) from roots) > 0
), children as materialized (
    select c.id, s.stop from stopping s join foliot.runs c on c.parent_id = s.id
    where (select count(*) from roots) > 0
        and case s.stop ->> 'is_forced' when 'true' then c.cancel ->> 'is_forced' is distinct from 'true'
            else c.cancel is null and c.rule is distinct from 'always' end
    for update of c skip locked
)
update foliot.runs c set cancel = children.stop from children where c.id = children.id
returning c.worker_id

-- name: get_parent(run_id)
-- A workflow or map by its id, or by that of any run of it: where it stands, and what it is made from.
select p.id, p.run_id, p.kind, p.on_failure, p.total, p.next_index, p.unfinished, p.succeeded, p.failed, p.cancelled,
    p.skipped,
    p.created_at, p.finished_at
from foliot.parents p where p.id = :run_id::uuid or p.run_id = :run_id::uuid
order by p.id = :run_id::uuid desc limit 1

-- name: list_workflows(before, scan, states, name, limit, namespace, qualified_name)
-- Those that have begun and are no steps of others, latest first, each with its latest run. Looks at :scan parents
-- below its cursor and says how far it got.
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
-- The latest run of each child, live or finished, in the order in which they were made.
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

-- name: reopen_parent(parent_id, run_id, unfinished, succeeded, skipped, old_run_id)
-- A workflow that has ended is under way again under a new run; its steps that are not run again keep what they came
-- to.
update foliot.parents
set root_id = id, run_id = :run_id::uuid, finished_at = null, stop = null, blame = null,
    unfinished = :unfinished::bigint,
    succeeded = :succeeded::bigint, failed = 0, cancelled = 0, skipped = :skipped::bigint
where id = :parent_id::uuid and run_id = :old_run_id::uuid and finished_at is not null
returning true

-- name: skip_hopeless(parent_id, now)
-- waiting -> skipped: steps that are run again although what they wait for has ended, and not as their rule wants it.
with closed as (
    delete from foliot.runs
    where parent_id = :parent_id::uuid and state = 'waiting'
        and foliot.rule_verdict(rule, unmet, met_succeeded, met_failed, met_skipped) = 'skip'
    returning *
)
insert into foliot.history (
    id, created_at, due_at, finished_at, token, attempt, lost, priority, state, queue, task, name, reason, payload,
    options, error, rerun_of,
    parent_id, step, upstream, has_dependents
)
select id, created_at, due_at, coalesce(:now::timestamptz, clock_timestamp()), token, attempt, lost, priority,
    'skipped', queue, task, name,
    case when met_skipped > 0 then 'dependency_skipped' else 'rule_unmet'
        end, payload, options, foliot.skip_error(rule, null, met_skipped),
    rerun_of, parent_id, step, upstream, has_dependents
from closed

-- name: point_to_rerun(old_ids, new_ids, since)
-- From the run that ended to the one that takes its place.
update foliot.history h set rerun_as = r.new_id
from unnest(:old_ids::uuid[], :new_ids::uuid[]) as r (old_id, new_id)
where h.id = r.old_id and h.finished_at >= :since::timestamptz

-- name: read_upstream(run_ids, max_bytes)
-- What runs may know of those before them: their states and results by step, or by name; and the signal that let it
-- start. No step has ended before its workflow was made, which leaves out the days before. Results that are too large
-- together (:max_bytes) stay where they are.
select r.id, r.signal, h.key, h.state, case when h.bytes <= :max_bytes::bigint then h.result end, h.bytes
from foliot.runs r left join foliot.parents p on p.id = r.parent_id
left join lateral (
    select coalesce(h.step, h.name, h.id::text) as key, h.state, h.result,
        coalesce(sum(octet_length(h.result::text)) over (), 0) as bytes
    from foliot.history h
    where h.id = any (r.upstream) and h.finished_at >= coalesce(p.created_at - interval '1 day', '-infinity')
) as h on true
where r.id = any (:run_ids::uuid[])

-- name: signal_run(run_id, signal, now)
-- held -> ready, or on to its limits. One that comes early is kept for when it is waited for; one that comes twice
-- changes nothing.
update foliot.runs
set signal = :signal::jsonb, due_at = case when held_by = 'signal' then at else due_at end,
    state = case
        when held_by is distinct from 'signal' then state when foliot.has_limits(options) then 'held' else 'ready'
    end,
    held_by = case when held_by is distinct from 'signal' then held_by when foliot.has_limits(options) then 'limit'
    end
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where id = :run_id::uuid and options ? 'signal' and signal is null and state in ('waiting', 'scheduled', 'held')
    and cancel is null
returning queue, state

-- name: time_out_signals(limit, now)
-- held -> ready for those whose signal did not come in time: they start, and see that it did not.
update foliot.runs
set signal = '{"timed_out": true}', held_by = case when foliot.has_limits(options) then 'limit' end,
    state = case when foliot.has_limits(options) then 'held' else 'ready' end
where id = any (array(
    select id from foliot.runs where held_by = 'signal' and due_at <= (select coalesce(:now::timestamptz,
        clock_timestamp()))
    order by due_at limit :limit::bigint for update skip locked
))
returning queue

-- name: forget_parents(limit, finished_before)
-- Those that ended before retention began, some at a time, with the items that they never made. Each is locked first,
-- which checks again that it has ended; one that is just being run again is stepped over.
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
