-- Checkpoints of durable functions: recorded by whoever holds the run, and by nobody else.
--
-- Each write of an attempt locks the run (`for share`, or `for update` where it changes the run) and checks its fence
-- (id, token, worker) under that lock, so that a worker which has lost the run records nothing.

-- name: open_checkpoints(run_id, token, worker_id, finished_from, now)
-- Everything recorded of a run. Waits that have ended are recorded as finished first: sleeps that are due, signals that
-- came or did not come in time, runs that have ended. One row, without a name, if nothing is recorded.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), held as materialized (
    select id from foliot.runs
    where id = :run_id::uuid and token = :token::bigint and worker_id = :worker_id::uuid and state = 'running'
    for share
), pending as materialized (
    select c.name,
        case c.kind
            when 'signal' then s.run_id is not null or coalesce(c.due_at <= at, false)
            when 'call' then h.id is not null or r.id is null
            else c.due_at <= at
        end as is_over,
        case c.kind when 'signal' then s.signal -> 'payload' when 'call' then h.result end as result,
        case
            when c.kind = 'signal' and s.run_id is null
                then jsonb_build_object('kind', 'SignalTimeout', 'message', 'no signal arrived in time')
            when c.kind = 'signal' and s.signal ->> 'approved' = 'false' then jsonb_build_object('kind', 'Rejected',
                'message', coalesce(nullif(s.signal ->> 'message', ''), 'no reason given'))
            when c.kind = 'call' and h.id is null
                then jsonb_build_object('kind', 'RunLost', 'message', 'the run is no longer known', 'state', 'lost')
            when c.kind = 'call' and h.state <> 'succeeded' then coalesce(h.error - 'traceback',
                jsonb_build_object('kind', initcap(h.state), 'message', coalesce(h.reason, ''))
            ) || jsonb_build_object('state', h.state)
        end as error
    from held join foliot.checkpoints c on c.run_id = held.id cross join clock
    left join foliot.signals s on c.kind = 'signal' and s.run_id = c.run_id and s.name = c.name
    left join foliot.runs r on r.id = c.child_id
    left join lateral (
        select h.id, h.state, h.reason, h.result, h.error from foliot.history h
        where h.id = c.child_id and h.finished_at >= :finished_from::timestamptz limit 1
    ) as h on c.kind = 'call'
    where c.finished_at is null
), settled as (
    update foliot.checkpoints c
    set finished_at = case c.kind when 'sleep' then c.due_at else clock.at end, result = p.result, error = p.error
    from pending p cross join clock
    where c.run_id = :run_id::uuid and c.name = p.name and p.is_over
)
select exists (select from held), clock.at, c.name, c.kind, c.function, coalesce(p.is_over, true) as is_done,
    coalesce(p.result, c.result) as result, case when p.is_over then p.error else c.error end as error, c.due_at,
    c.child_id
from clock
left join foliot.checkpoints c on c.run_id = :run_id::uuid
left join pending p on p.name = c.name

-- name: record_checkpoints(
--     worker_id, run_ids, tokens, names, kinds, functions, results, took_seconds, wait_seconds, now
-- )
-- Steps that have returned and sleeps that begin, of many runs at once. Says for each whether the worker still holds
-- the run; only then it is recorded. Sent again after a lost answer, it finds its own records.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), given as materialized (
    select * from unnest(:run_ids::uuid[], :tokens::bigint[], :names::text[], :kinds::text[], :functions::text[],
        :results::json[], :took_seconds::float8[], :wait_seconds::float8[])
    with ordinality as g (run_id, token, name, kind, function, result, took_seconds, wait_seconds, ordinal)
), held as materialized (
    select id, token, attempt, lost from foliot.runs
    where id = any (:run_ids::uuid[]) and worker_id = :worker_id::uuid and state = 'running'
        and (id, token) in (select run_id, token from given)
    order by id for share
), stored as (
    insert into foliot.checkpoints (
        run_id, name, kind, function, token, attempt, lost, started_at, finished_at, due_at, result
    )
    select g.run_id, g.name, g.kind, g.function, g.token, h.attempt, h.lost,
        at - coalesce(g.took_seconds, 0) * interval '1 second', case when g.wait_seconds is null then at end,
        at + g.wait_seconds * interval '1 second', g.result
    from given g join held h on h.id = g.run_id and h.token = g.token cross join clock
    order by g.run_id, g.name
    on conflict (run_id, name) do nothing
)
select h.id is not null, at + g.wait_seconds * interval '1 second'
from given g cross join clock left join held h on h.id = g.run_id and h.token = g.token
order by g.ordinal

-- name: record_in(run_id, token, worker_id, name, function, result, took_seconds, now)
-- The record of a step whose effect is in the same transaction. False: the worker no longer holds the run, or the step
-- is recorded already, so the effect must not be committed.
with held as materialized (
    select id, token, attempt, lost from foliot.runs
    where id = :run_id::uuid and token = :token::bigint and worker_id = :worker_id::uuid and state = 'running'
    for share
), stored as (
    insert into foliot.checkpoints (
        run_id, name, kind, function, token, attempt, lost, started_at, finished_at, result
    )
    select id, :name::text, 'transaction', :function::text, token, attempt, lost,
        at - :took_seconds::float8 * interval '1 second', at, :result::json
    from held cross join (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    on conflict (run_id, name) do nothing
    returning run_id
)
select exists (select from stored)

-- name: await_signal(run_id, token, worker_id, name, timeout_seconds, now)
-- Begins to wait for a signal, or takes the one that came before. No row: the worker no longer holds the run.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), held as materialized (
    select id, token, attempt, lost from foliot.runs
    where id = :run_id::uuid and token = :token::bigint and worker_id = :worker_id::uuid and state = 'running'
    for share
), came as materialized (
    select signal from foliot.signals where run_id = :run_id::uuid and name = :name::text
), found as materialized (
    select h.*, at, s.signal is not null as is_done, s.signal -> 'payload' as result,
        case
            when s.signal ->> 'approved' = 'false' then jsonb_build_object('kind', 'Rejected',
                'message', coalesce(nullif(s.signal ->> 'message', ''), 'no reason given'))
        end as error
    from held h cross join clock left join came s on true
), stored as (
    insert into foliot.checkpoints (
        run_id, name, kind, token, attempt, lost, started_at, finished_at, due_at, result, error
    )
    select id, :name::text, 'signal', token, attempt, lost, at, case when is_done then at end,
        at + :timeout_seconds::float8 * interval '1 second', result, error
    from found
    on conflict (run_id, name) do nothing
)
select at, is_done, result, error, at + :timeout_seconds::float8 * interval '1 second' as due_at from found

-- name: begin_call(run_id, token, worker_id, name, function, child_id, now)
-- First in the transaction that makes the child: whoever comes again finds the child that is there. No row: the worker
-- no longer holds the run.
with held as materialized (
    select id, token, attempt, lost from foliot.runs
    where id = :run_id::uuid and token = :token::bigint and worker_id = :worker_id::uuid and state = 'running'
    for update
), stored as (
    insert into foliot.checkpoints (
        run_id, name, kind, function, token, attempt, lost, started_at, child_id
    )
    select id, :name::text, 'call', :function::text, token, attempt, lost,
        coalesce(:now::timestamptz, clock_timestamp()), :child_id::uuid
    from held
    on conflict (run_id, name) do nothing
    returning child_id
)
select coalesce((select child_id from stored), c.child_id), exists (select from stored)
from held left join foliot.checkpoints c on c.run_id = held.id and c.name = :name::text

-- name: tie_child(run_id, child_id, name)
-- The child belongs to its caller: each is nudged when the other ends.
with tied as (
    update foliot.runs r
    set has_dependents = true,
        parent_id = case r.id when :child_id::uuid then :run_id::uuid else r.parent_id end,
        step = case r.id when :child_id::uuid then :name::text else r.step end
    where r.id in (:run_id::uuid, :child_id::uuid)
)
insert into foliot.dependencies (upstream_id, run_id, nudge)
values (:child_id::uuid, :run_id::uuid, 'wake'), (:run_id::uuid, :child_id::uuid, 'cancel')

-- name: lock_suspending(ids, tokens, worker_id)
-- First in its transaction, so that suspend_runs sees everything that came before its lock.
select r.id from foliot.runs r join unnest(:ids::uuid[], :tokens::bigint[]) as o (id, token) on r.id = o.id
where r.token = o.token and r.worker_id = :worker_id::uuid and r.state = 'running'
order by r.id for update of r

-- name: suspend_runs(worker_id, ids, tokens, awaits, outputs, now, aging)
-- running -> scheduled | held | waiting: the function gave up its slot and waits for an instant, a signal or a child;
-- -> ready, or held by its limits, if that has come meanwhile. The attempt is not consumed. :awaits says
-- what the run waits for. A signal locks the run first; the end of a called run nudges it later.
with outcome as (
    select o.*, coalesce(:now::timestamptz, clock_timestamp()) as at
    from unnest(:ids::uuid[], :tokens::bigint[], :awaits::jsonb[], :outputs::bytea[]) as o (id, token, awaits, output)
), held as materialized (
    select r.id, r.token, r.attempt, r.worker_id, r.started_at, r.priority, r.options, o.awaits, o.output, o.at,
        (o.awaits ->> 'until')::timestamptz as until, coalesce(
            (o.awaits ->> 'until')::timestamptz <= o.at
            or exists (select from foliot.signals s where s.run_id = r.id and o.awaits -> 'signals' ? s.name)
            or exists (
                select from jsonb_each_text(o.awaits -> 'children') as c (name, id)
                where not exists (
                    select from foliot.dependencies d where d.upstream_id = c.id::uuid and d.run_id = r.id
                )
            ), false
        ) as is_over
    from foliot.runs r join outcome o on r.id = o.id
    where r.token = o.token and r.worker_id = :worker_id::uuid and r.state = 'running'
), kept as (
    insert into foliot.attempts (run_id, token, attempt, worker_id, started_at, finished_at, outcome, output)
    select id, token, attempt, worker_id, started_at, at, 'suspended', output from held
), freed as (
    insert into foliot.turns (kind, key, look_at)
    select distinct 'concurrency', options #>> '{concurrency,key}', '-infinity'::timestamptz from held
    where options #>> '{concurrency,key}' is not null
), timed as materialized (
    select *, case when is_over then at when awaits ? 'signals' then coalesce(until, at + interval '10 years')
        else coalesce(until, at) end as due
    from held
)
update foliot.runs r
set state = case
        when t.is_over then case when foliot.has_limits(t.options) then 'held' else 'ready' end
        when t.awaits ? 'signals' then 'held' when t.until is not null then 'scheduled' else 'waiting'
    end,
    held_by = case
        when t.is_over then case when foliot.has_limits(t.options) then 'limit' end
        when t.awaits ? 'signals' then 'signal'
    end,
    awaits = case when not t.is_over then t.awaits end, worker_id = null, is_probe = null, attempt = r.attempt - 1,
    unmet = null, due_at = t.due,
    rank = (extract(epoch from case when t.awaits ? 'signals' then t.at else t.due end) * 1000000)::bigint
        - t.priority * :aging::bigint
from timed t where r.id = t.id

-- name: take_nudges(limit, now)
-- waiting | scheduled | held -> ready, or held by its limits, for functions that wait for a run which has ended. Runs
-- whose caller has ended are asked to end. Rows of nudges that another transaction takes are left to it.
with taken as materialized (
    delete from foliot.nudges
    where ctid = any (array(select ctid from foliot.nudges limit :limit::bigint for update skip locked))
    returning run_id, nudge
), locked as materialized (
    select r.id, r.awaits, r.cancel, r.queue, r.worker_id from foliot.runs r
    where r.id = any (array(select run_id from taken)) order by r.id for update
), orphaned as materialized (
    select l.id from locked l
    where l.cancel is null and exists (select from taken t where t.run_id = l.id and t.nudge = 'cancel')
), changed as (
    update foliot.runs r
    set cancel = case
            when o.id is null then r.cancel
            else '{"reason": "cancelled", "message": "the run that called it has ended", "is_forced": false}'
        end,
        state = case
            when o.id is not null then r.state when foliot.has_limits(r.options) then 'held' else 'ready'
        end,
        held_by = case
            when o.id is not null then r.held_by when foliot.has_limits(r.options) then 'limit'
        end,
        awaits = case when o.id is not null then r.awaits end,
        due_at = case when o.id is not null then r.due_at else at end,
        rank = case
            when o.id is not null or r.held_by = 'signal' then r.rank
            else r.rank + (extract(epoch from at - r.due_at) * 1000000)::bigint
        end
    from locked l left join orphaned o on o.id = l.id
    cross join (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    where r.id = l.id and (
        o.id is not null or (
            l.awaits ? 'children' and exists (select from taken t where t.run_id = l.id and t.nudge = 'wake')
        )
    )
    returning r.queue, r.state, r.worker_id
)
select (select count(*) from taken), queue, state, worker_id from (select) as always left join changed on true

-- name: wake_run(run_id, now)
-- A function that waits looks again at what it waits for: it should have gone on, and did not.
update foliot.runs r
set state = case when foliot.has_limits(r.options) then 'held' else 'ready' end,
    held_by = case when foliot.has_limits(r.options) then 'limit' end, awaits = null,
    due_at = coalesce(:now::timestamptz, clock_timestamp())
where r.id = :run_id::uuid and r.awaits is not null and r.state <> 'running'

-- name: lock_run(run_id)
-- First in the transaction that signals a run.
select r.queue, r.awaits, r.cancel is not null from foliot.runs r where r.id = :run_id::uuid for update

-- name: keep_signal(run_id, name, signal, most, now)
-- False: the run has had a signal of this name that said something else, or has too many.
with stored as (
    insert into foliot.signals (run_id, name, sent_at, signal)
    select :run_id::uuid, :name::text, coalesce(:now::timestamptz, clock_timestamp()), :signal::json
    where (select count(*) from foliot.signals s where s.run_id = :run_id::uuid) < :most::bigint
    on conflict (run_id, name) do nothing
    returning true
)
select exists (select from stored) or exists (
    select from foliot.signals s
    where s.run_id = :run_id::uuid and s.name = :name::text and s.signal::text = :signal::text
)

-- name: wake_signalled(run_id, name, now)
-- held -> ready, or held by its limits: a function that waits for this signal.
update foliot.runs r
set state = case when foliot.has_limits(r.options) then 'held' else 'ready' end,
    held_by = case when foliot.has_limits(r.options) then 'limit' end, awaits = null,
    due_at = coalesce(:now::timestamptz, clock_timestamp())
where r.id = :run_id::uuid and r.held_by = 'signal' and r.awaits -> 'signals' ? :name::text
returning r.state

-- name: note_unused(run_id, token, worker_id, names)
-- Records that the function ended without asking for.
update foliot.checkpoints c set is_unused = true
from foliot.runs r
where r.id = :run_id::uuid and r.token = :token::bigint and r.worker_id = :worker_id::uuid and r.state = 'running'
    and c.run_id = r.id and c.name = any (:names::text[])

-- name: list_checkpoints(run_id, after, preview, limit)
-- In the order in which they began, a page at a time. A sleep ends at its instant: its function records that only when
-- it asks for the sleep again.
select c.name, c.kind, c.function, c.attempt, c.started_at, c.due_at, c.child_id,
    case when c.kind = 'sleep' and c.due_at <= clock_timestamp() then coalesce(c.finished_at, c.due_at)
        else c.finished_at end as finished_at,
    left(c.result::text, :preview::int) as result, octet_length(c.result::text) as result_bytes, c.error, c.is_unused
from foliot.checkpoints c
where c.run_id = :run_id::uuid
    and (:after::text is null or (c.started_at, c.name) > (
        select a.started_at, a.name from foliot.checkpoints a where a.run_id = :run_id::uuid and a.name = :after::text
    ))
order by c.started_at, c.name limit :limit::bigint

-- name: forget_checkpoints(after_at, after_id, limit, finished_before)
-- Checkpoints and signals of runs that are no longer known, some at a time. Only what began before retention did can
-- belong to such a run. How many rows it looked at, and the last of them.
with old as materialized (
    select run_id, started_at from foliot.checkpoints
    where started_at < :finished_before::timestamptz
        and (started_at, run_id) > (:after_at::timestamptz, :after_id::uuid)
    order by started_at, run_id limit :limit::bigint
), gone as materialized (
    select distinct o.run_id from old o
    where not exists (select from foliot.runs r where r.id = o.run_id)
        and not exists (select from foliot.history h
            where h.id = o.run_id and h.finished_at >= :finished_before::timestamptz)
), forgotten as (
    delete from foliot.checkpoints where run_id = any (array(select run_id from gone))
), unheard as (
    delete from foliot.signals s
    where s.ctid = any (array(select ctid from foliot.signals where sent_at < :finished_before::timestamptz
        order by sent_at limit :limit::bigint))
        and not exists (select from foliot.runs r where r.id = s.run_id)
)
select (select count(*) from old), (select max(started_at) from old), (
    select run_id from old order by started_at desc, run_id desc limit 1
)
