-- Conditions of steps. The database holds a step with a condition once its rule lets it go, and a scheduler decides.

-- name: list_conditions(limit)
-- The runs that a condition holds, with their conditions.
select id, options -> 'condition' from foliot.runs
where held_by = 'condition' and cancel is null order by id limit :limit::bigint

-- name: read_outcomes(ids, finished_from, max_bytes)
-- How far the steps are that conditions look at. A result that is too large is left out.
select id, state, case when octet_length(result::text) <= :max_bytes::bigint then result end,
    coalesce(octet_length(result::text) > :max_bytes::bigint, false)
from foliot.history where id = any (:ids::uuid[]) and finished_at >= :finished_from::timestamptz
union all
select id, state, null, false from foliot.runs where id = any (:ids::uuid[])

-- name: pass_conditions(ids, now)
-- held -> ready, or on to a delay, a signal or a limit, as a step does that has no condition.
with locked as materialized (
    select id, options, signal, due_at, rank, greatest(due_at, at + delay_seconds * interval '1 second', at) as due, at
    from foliot.runs, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    where id = any (:ids::uuid[]) and held_by = 'condition' and cancel is null
    order by id for update of runs
)
update foliot.runs r
set state = case
        when l.due > l.at then 'scheduled'
        when l.options ? 'signal' and l.signal is null then 'held'
        when foliot.has_limits(l.options) then 'held'
        else 'ready'
    end,
    held_by = case
        when l.due > l.at then null
        when l.options ? 'signal' and l.signal is null then 'signal'
        when foliot.has_limits(l.options) then 'limit'
    end,
    due_at = case
        when l.due <= l.at and l.options ? 'signal' and l.signal is null then l.at + foliot.signal_wait(l.options)
        else l.due
    end,
    rank = l.rank + (extract(epoch from l.due - l.due_at) * 1000000)::bigint
from locked l where r.id = l.id
returning r.queue, r.state

-- name: close_conditional(ids, states, reasons, errors, patterns, now)
-- held -> skipped for a condition that is false, held -> failed for one that has no value. Roots first, as whoever
-- settles what follows from it wants them.
with decided as (
    select * from unnest(:ids::uuid[], :states::text[], :reasons::text[], :errors::jsonb[], :patterns::text[])
        as d (id, state, reason, error, pattern)
), roots as materialized (
    select id from foliot.parents
    where id = any (array(select p.root_id from foliot.runs r join foliot.parents p on p.id = r.parent_id
        where r.id = any (:ids::uuid[])))
    order by id for update
), closed as (
    delete from foliot.runs
    where id = any (array(
        select id from foliot.runs
        where id = any (:ids::uuid[]) and held_by = 'condition' and cancel is null
            and (select count(*) from roots) >= 0
        order by id for update
    ))
    returning *
), counted as (
    insert into foliot.counted (name, value)
    select d.state, count(*) from closed join decided d on d.id = closed.id group by d.state
), kept as (
    insert into foliot.history ({{run_columns}}, finished_at, state, reason, error, fingerprint)
    select {{run_columns}}, coalesce(:now::timestamptz, clock_timestamp()), ended.state, ended.reason, ended.error,
        case when ended.pattern <> '' then md5(task || ': ' || ended.pattern) end
    from closed join (
        select id as ended_id, state, reason, error, pattern from decided
    ) as ended on ended.ended_id = closed.id
)
select count(*) from closed
