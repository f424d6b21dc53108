-- Counts ended runs for their dependents, releases or skips these, and returns the skipped ones.
--
-- Where one skipped run is enough to doom the next, the whole chain goes in one call, however long it is. Where it
-- takes several, the caller calls again. `blame` names the upstream that failed; under the rule all_failed, an upstream
-- that failed is not to blame. A durable function and the runs that it called are no dependents of each other: they are
-- only named in `nudges`, because a transaction that ends runs must not wait for running ones.
create or replace function foliot.settle_dependents(ended foliot.ending[], at timestamptz) returns foliot.ending[]
language plpgsql as $$
declare
    skipped foliot.ending[];
begin
    with recursive met as (
        delete from foliot.dependencies d using unnest(ended) as e
        where d.upstream_id = e.id and e.has_dependents
        returning d.run_id, d.nudge, e.state, e.blame
    ), nudged as (
        insert into foliot.nudges (run_id, nudge) select run_id, nudge from met where nudge is not null
    ), counted as materialized (
        select run_id, count(*) as number, count(*) filter (where state = 'succeeded') as succeeded,
            count(*) filter (where state in ('failed', 'cancelled')) as failed,
            count(*) filter (where state = 'skipped') as skipped,
            min(blame) as blame, min(blame) filter (where state = 'skipped') as blame_of_skipped
        from met where nudge is null group by run_id
    ), locked as materialized (
        -- A run without a counter waits for its own children.
        select id, rule, options, signal, due_at, delay_seconds, rank, unmet, met_succeeded, met_failed, met_skipped,
            blame
        from foliot.runs
        where id = any (array(select run_id from counted)) and state = 'waiting' and unmet is not null
        order by id for update
    ), tallied as (
        select l.id, l.rule, l.options, l.signal, l.due_at,
            greatest(l.due_at, at + l.delay_seconds * interval '1 second', at) as due, l.rank,
            l.unmet - c.number as unmet, coalesce(l.met_succeeded, 0) + c.succeeded as met_succeeded,
            coalesce(l.met_failed, 0) + c.failed as met_failed, coalesce(l.met_skipped, 0) + c.skipped as met_skipped,
            coalesce(l.blame, case l.rule when 'all_failed' then c.blame_of_skipped else c.blame end) as blame
        from locked l join counted c on c.run_id = l.id
    ), decided as materialized (
        select *, foliot.rule_verdict(rule, unmet, met_succeeded, met_failed, met_skipped) as verdict from tallied
    ), let_go as (
        update foliot.runs r
        set unmet = d.unmet, met_succeeded = d.met_succeeded, met_failed = d.met_failed, met_skipped = d.met_skipped,
            blame = d.blame,
            state = case
                when d.verdict is null then 'waiting'
                when d.options ? 'condition' then 'held'
                when d.due > at then 'scheduled'
                when d.options ? 'signal' and d.signal is null then 'held'
                when foliot.has_limits(d.options) then 'held'
                else 'ready'
            end,
            held_by = case
                when d.verdict is null then null
                when d.options ? 'condition' then 'condition'
                when d.due > at then null
                when d.options ? 'signal' and d.signal is null then 'signal'
                when foliot.has_limits(d.options) then 'limit'
            end,
            due_at = case
                when d.verdict is null or d.options ? 'condition' then d.due_at
                when d.due <= at and d.options ? 'signal' and d.signal is null
                    then at + foliot.signal_wait(d.options)
                else d.due
            end,
            rank = case
                when d.verdict is null or d.options ? 'condition' then d.rank
                else d.rank + (extract(epoch from d.due - d.due_at) * 1000000)::bigint
            end
        from decided d
        where r.id = d.id and d.verdict is distinct from 'skip'
    ), doomed as (
        select id, rule, blame, met_skipped from decided where verdict = 'skip'
        union
        -- `offset 0` keeps the planner to one index lookup a step; otherwise the cost is quadratic in the length.
        select r.id, r.rule, doomed.blame, 1::bigint
        from doomed
        cross join lateral (select e.run_id from foliot.dependencies e where e.upstream_id = doomed.id offset 0) as e
        cross join lateral (
            select r.id, r.rule from foliot.runs r
            where r.id = e.run_id and r.state = 'waiting'
                and foliot.rule_verdict(r.rule, r.unmet - 1, r.met_succeeded, r.met_failed, r.met_skipped + 1) = 'skip'
            offset 0
        ) as r
        where not exists (select from decided d where d.id = r.id)
    ), reasons as materialized (
        select distinct on (id) id, foliot.skip_error(rule, blame, met_skipped) as error, blame from doomed
        order by id, blame
    ), closed as (
        delete from foliot.runs r using reasons d
        where r.id = any (array(select id from reasons)) and r.id = d.id and r.state = 'waiting'
        returning r.*, d.error, d.blame as culprit
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name,
            reason, payload,
            options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, 'skipped', queue, task, name,
            case error ->> 'kind'
                when 'DependencyFailed' then 'dependency_failed'
                when 'DependencySkipped' then 'dependency_skipped'
                else 'rule_unmet'
            end,
            payload, options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        from closed
    )
    select array_agg(row(id, 'skipped', parent_id, culprit, has_dependents)::foliot.ending) into skipped from closed;
    return skipped;
end
$$;
