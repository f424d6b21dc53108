-- Runs that wait for other runs, and runs that are made of other runs.
--
-- Two relations, two words each. A run that waits for another is its *dependent*, the other its *upstream*: a row in `dependencies` for as
-- long as the upstream lives, and a counter on the dependent. A run that is made of others, a workflow of its steps or a map of its items,
-- is their *parent*: a row in `parents` with counters of its *children*.
--
-- Whatever ends a run, and however, does so by an insert into `history`. A trigger on that insert settles what follows from it in the same
-- transaction: counters go down, dependents are let go or skipped, the next items of a map are made, parents end. No statement can forget
-- it, and asking "are all my upstreams done?", which strands dependents when two end at once, is never needed.
--
-- Locks are taken in one order, so that nobody waits in a circle: runs that are running, by whoever ends them; then the roots, the outermost
-- parents of what ends, by id: one transaction at a time settles a workflow with all that is nested in it; then everything else. Whoever
-- holds a root never waits for a run that is running, nor does whoever ends other runs lock them before their roots.

alter table foliot.runs
    add column parent_id uuid,
    add column step text,
    add column upstream uuid[],
    add column has_dependents boolean,
    add column rule text,
    add column unmet bigint,
    add column met_succeeded bigint,
    add column met_failed bigint,
    add column met_skipped bigint,
    add column blame text,
    add column delay_seconds double precision,
    add column signal jsonb;

alter table foliot.history
    add column parent_id uuid,
    add column step text,
    add column upstream uuid[],
    add column has_dependents boolean;

create index runs_children on foliot.runs (parent_id) where parent_id is not null;
create index history_children on foliot.history (parent_id) where parent_id is not null;
-- Those that wait and are no steps: steps are found by their parents.
create index runs_waiting on foliot.runs (id) where state = 'waiting' and parent_id is null;
create index runs_awaiting_signal on foliot.runs (due_at) where held_by = 'signal';

create table foliot.dependencies (
    upstream_id uuid not null,
    run_id uuid not null
);
create index dependencies_upstream on foliot.dependencies (upstream_id);

-- `root_id`: the outermost parent around it, or itself. `run_id`: its latest run. `stop`: what its children are told when they are to end.
create table foliot.parents (
    id uuid primary key,
    root_id uuid not null,
    run_id uuid not null,
    kind text not null,
    created_at timestamptz not null,
    finished_at timestamptz,
    on_failure text not null,
    stop jsonb,
    blame text,
    total bigint not null,
    next_index bigint not null,
    capacity bigint not null,
    unfinished bigint not null default 0,
    succeeded bigint not null default 0,
    failed bigint not null default 0,
    cancelled bigint not null default 0,
    skipped bigint not null default 0,
    template jsonb,
    items jsonb,
    constraint parents_kind_is_known check (kind in ('workflow', 'map')),
    constraint parents_on_failure_is_known check (on_failure in ('fail_fast', 'continue')),
    constraint parents_count_right check (unfinished >= 0 and next_index <= total)
) with (fillfactor = 50);
create unique index parents_run on foliot.parents (run_id);
create index parents_finished on foliot.parents (finished_at) where finished_at is not null;
create index parents_stopping on foliot.parents (id) where stop is not null and finished_at is null;

create type foliot.ending as (id uuid, state text, parent_id uuid, blame text, has_dependents boolean);

create function foliot.new_id(at timestamptz) returns uuid language sql volatile parallel safe
return encode(set_bit(set_bit(overlay(
    uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6
), 52, 1), 53, 1), 'hex')::uuid;

-- What a rule says once so many upstreams have ended so: 'run', 'skip', or null while it is open. A cancelled upstream counts as failed.
create function foliot.rule_verdict(rule text, unmet bigint, succeeded bigint, failed bigint, skipped bigint) returns text
language sql immutable parallel safe
return case rule
    when 'all_success' then case when failed + skipped > 0 then 'skip' when unmet = 0 then 'run' end
    when 'all_failed' then case when succeeded + skipped > 0 then 'skip' when unmet = 0 then 'run' end
    when 'one_success' then case when succeeded > 0 then 'run' when unmet = 0 then 'skip' end
    when 'one_failed' then case when failed > 0 then 'run' when unmet = 0 then 'skip' end
    when 'none_failed' then case when failed > 0 then 'skip' when unmet = 0 then 'run' end
    when 'none_failed_min_one_success'
        then case when failed > 0 then 'skip' when unmet = 0 then case when succeeded > 0 then 'run' else 'skip' end end
    else case when unmet = 0 then 'run' end
end;

-- How long a run waits for its signal: ten years, if it does not say.
create function foliot.signal_wait(options jsonb) returns interval language sql immutable parallel safe
return coalesce((options #>> '{signal,timeout_seconds}')::float8, 315360000) * interval '1 second';

-- Why it is skipped, as an error that names the step which is to blame.
create function foliot.skip_error(rule text, blame text, skipped bigint) returns jsonb language sql immutable parallel safe
return case
    when blame is not null then jsonb_build_object('kind', 'DependencyFailed', 'message', 'dependency_failed: ' || blame, 'upstream', blame)
    when rule in ('one_failed', 'all_failed') then jsonb_build_object('kind', 'RuleUnmet', 'message', 'rule ' || rule || ': too little has failed')
    when skipped > 0 then jsonb_build_object('kind', 'DependencySkipped', 'message', 'what it waits for was skipped')
    else jsonb_build_object('kind', 'RuleUnmet', 'message', 'rule ' || rule || ' can''t be met')
end;

-- Counts what ended for those that wait for it: lets them go, or skips them. Returns those it skipped. Where one skipped run dooms the next
-- whatever else it waits for, the whole chain goes at once, however long; where it takes several to doom one, that takes another turn. Who
-- is to blame: of all_failed, nobody who failed.
create function foliot.settle_dependents(ended foliot.ending[], at timestamptz) returns foliot.ending[] language plpgsql as $$
declare
    skipped foliot.ending[];
begin
    with recursive met as (
        delete from foliot.dependencies d using unnest(ended) as e
        where d.upstream_id = e.id and e.has_dependents
        returning d.run_id, e.state, e.blame
    ), counted as materialized (
        select run_id, count(*) as number, count(*) filter (where state = 'succeeded') as succeeded,
            count(*) filter (where state in ('failed', 'cancelled')) as failed, count(*) filter (where state = 'skipped') as skipped,
            min(blame) as blame, min(blame) filter (where state = 'skipped') as blame_of_skipped
        from met group by run_id
    ), locked as materialized (
        -- Without a counter, it waits for its own children.
        select id, rule, options, signal, due_at, delay_seconds, rank, unmet, met_succeeded, met_failed, met_skipped, blame from foliot.runs
        where id = any (array(select run_id from counted)) and state = 'waiting' and unmet is not null
        order by id for update
    ), tallied as (
        select l.id, l.rule, l.options, l.signal, l.due_at, greatest(l.due_at, at + l.delay_seconds * interval '1 second', at) as due, l.rank,
            l.unmet - c.number as unmet, coalesce(l.met_succeeded, 0) + c.succeeded as met_succeeded,
            coalesce(l.met_failed, 0) + c.failed as met_failed, coalesce(l.met_skipped, 0) + c.skipped as met_skipped,
            coalesce(l.blame, case l.rule when 'all_failed' then c.blame_of_skipped else c.blame end) as blame
        from locked l join counted c on c.run_id = l.id
    ), decided as materialized (
        select *, foliot.rule_verdict(rule, unmet, met_succeeded, met_failed, met_skipped) as verdict from tallied
    ), let_go as (
        update foliot.runs r
        set unmet = d.unmet, met_succeeded = d.met_succeeded, met_failed = d.met_failed, met_skipped = d.met_skipped, blame = d.blame,
            state = case
                when d.verdict is null then 'waiting'
                when d.due > at then 'scheduled'
                when d.options ? 'signal' and d.signal is null then 'held'
                when d.options ?| '{concurrency,rate}' then 'held'
                else 'ready'
            end,
            held_by = case
                when d.verdict is null or d.due > at then null
                when d.options ? 'signal' and d.signal is null then 'signal'
                when d.options ?| '{concurrency,rate}' then 'limit'
            end,
            due_at = case
                when d.verdict is null then d.due_at
                when d.due <= at and d.options ? 'signal' and d.signal is null
                    then at + foliot.signal_wait(d.options)
                else d.due
            end,
            rank = case when d.verdict is null then d.rank else d.rank + (extract(epoch from d.due - d.due_at) * 1000000)::bigint end
        from decided d
        where r.id = d.id and d.verdict is distinct from 'skip'
    ), doomed as (
        select id, rule, blame, met_skipped from decided where verdict = 'skip'
        union
        -- From one to the next by its index, and in no other order, or a long chain takes its length to the square.
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
        select distinct on (id) id, foliot.skip_error(rule, blame, met_skipped) as error, blame from doomed order by id, blame
    ), closed as (
        delete from foliot.runs r using reasons d
        where r.id = any (array(select id from reasons)) and r.id = d.id and r.state = 'waiting'
        returning r.*, d.error, d.blame as culprit
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name, reason, payload,
            options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, 'skipped', queue, task, name,
            case error ->> 'kind' when 'DependencyFailed' then 'dependency_failed' when 'DependencySkipped' then 'dependency_skipped' else 'rule_unmet' end,
            payload, options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        from closed
    )
    select array_agg(row(id, 'skipped', parent_id, culprit, has_dependents)::foliot.ending) into skipped from closed;
    return skipped;
end
$$;

-- Makes the next items of a map, up to its capacity.
create function foliot.refill(map_id uuid, at timestamptz) returns void language plpgsql as $$
declare
    map foliot.parents;
    number bigint;
    chunk bigint;
begin
    select * into map from foliot.parents where id = map_id for update;
    number := least(map.capacity - map.unfinished, map.total - map.next_index);
    if number <= 0 or map.stop is not null then
        return;
    end if;
    chunk := (map.template ->> 'chunk_size')::bigint;
    with numbered as (
        select n - 1 as index, value from jsonb_array_elements(map.items) with ordinality as e (value, n)
        where map.items is not null and n > map.next_index * chunk and n <= (map.next_index + number) * chunk
        union all
        select i, to_jsonb((map.template ->> 'start')::bigint + i * (map.template ->> 'step')::bigint)
        from generate_series(
            map.next_index * chunk, least((map.next_index + number) * chunk, (map.template ->> 'count')::bigint) - 1
        ) as i
        where map.items is null
    ), chunked as (
        select index / chunk as place, case when chunk = 1 then (array_agg(value))[1] else jsonb_agg(value order by index) end as value
        from numbered group by index / chunk
    ), template as (
        select * from jsonb_to_record(map.template) as t (
            task text, queue text, name text, priority bigint, payload jsonb, options jsonb, item_name text, rank_offset bigint
        )
    )
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, parent_id, step
    )
    select foliot.new_id(at), at, at, (extract(epoch from at) * 1000000)::bigint - t.rank_offset + c.place - map.next_index, t.priority,
        case when t.options ?| '{concurrency,rate}' then 'held' else 'ready' end,
        case when t.options ?| '{concurrency,rate}' then 'limit' end,
        t.queue, t.task, t.name, coalesce(t.payload, '{}') || jsonb_build_object(t.item_name, c.value), t.options, map.id, c.place::text
    from chunked c, template t;
    update foliot.parents set next_index = next_index + number, unfinished = unfinished + number where id = map_id;
end
$$;

-- Ends the children of a parent that stops, but for those that run: they are asked to end. What is to run always does so. What somebody
-- else has in hand is not waited for, but left to spread_cancels.
create function foliot.stop_children(stopped_id uuid, why jsonb, at timestamptz) returns foliot.ending[] language plpgsql as $$
declare
    ended foliot.ending[];
begin
    update foliot.parents set stop = why where id = stopped_id;
    update foliot.runs set cancel = why
    where id = any (array(
        select r.id from foliot.runs r
        where r.parent_id = stopped_id and r.cancel is null and r.rule is distinct from 'always'
            and (r.state = 'running' or exists (select from foliot.parents p where p.run_id = r.id))
        for update of r skip locked
    ));
    with closed as (
        delete from foliot.runs
        where id = any (array(
            select id from foliot.runs
            where parent_id = stopped_id and state <> 'running' and cancel is null and rule is distinct from 'always'
                and not exists (select from foliot.parents p where p.run_id = runs.id)
            for update skip locked
        ))
        returning *
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name, reason, payload,
            options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, 'cancelled', queue, task, name, why ->> 'reason',
            payload, options, jsonb_build_object('kind', 'Cancelled', 'message', why ->> 'message'), job_id, tick_at, rerun_of, parent_id,
            step, upstream, has_dependents
        from closed
    )
    select array_agg(row(id, 'cancelled', parent_id, step, has_dependents)::foliot.ending) into ended from closed;
    return ended;
end
$$;

-- How the children of a parent that has ended came out, as its result: for a map of some hundred items, what each of them returned.
create function foliot.parent_result(p foliot.parents) returns json language sql stable
return (
    select case
        when r.results is null
            then json_build_object('succeeded', p.succeeded, 'failed', p.failed, 'cancelled', p.cancelled, 'skipped', p.skipped)
        else json_build_object(
            'succeeded', p.succeeded, 'failed', p.failed, 'cancelled', p.cancelled, 'skipped', p.skipped, 'results', r.results
        )
    end
    from (
        select case
            when coalesce(sum(octet_length(h.result::text)), 0) <= 1000000
                then json_agg(coalesce(h.result, 'null'::json) order by h.step::bigint)
        end as results
        from foliot.history h
        where p.kind = 'map' and p.total <= 1000 and p.failed + p.cancelled = 0 and h.parent_id = p.id and h.state = 'succeeded'
            and h.finished_at >= p.created_at - interval '1 day'
    ) as r
);

-- Counts what ended for its parents. Returns what ends by it: the other children of one that fails fast, and parents whose children have all
-- ended.
create function foliot.settle_parents(ended foliot.ending[], at timestamptz) returns foliot.ending[] language plpgsql as $$
declare
    p record;
    complete uuid[] := '{}';
    more foliot.ending[];
    found foliot.ending[];
begin
    for p in
        with counted as (
            select parent_id, count(*) as number, count(*) filter (where state = 'succeeded') as succeeded,
                count(*) filter (where state = 'failed') as failed, count(*) filter (where state = 'cancelled') as cancelled,
                count(*) filter (where state = 'skipped') as skipped, min(blame) filter (where state = 'failed') as blame
            from unnest(ended) where parent_id is not null group by parent_id
        ), locked as materialized (
            select id from foliot.parents where id = any (array(select parent_id from counted)) order by id for update
        )
        update foliot.parents u
        set unfinished = u.unfinished - c.number, succeeded = u.succeeded + c.succeeded, failed = u.failed + c.failed,
            cancelled = u.cancelled + c.cancelled, skipped = u.skipped + c.skipped, blame = coalesce(u.blame, c.blame)
        from counted c join locked on locked.id = c.parent_id
        where u.id = c.parent_id
        returning u.id, u.kind, u.unfinished, u.next_index, u.total, u.capacity, u.stop is not null as is_stopping, u.blame,
            u.on_failure = 'fail_fast' and u.failed > 0 and u.stop is null as begins_to_stop
    loop
        if p.begins_to_stop then
            found := foliot.stop_children(
                p.id,
                jsonb_build_object('reason', 'fail_fast', 'message', 'another has failed: ' || coalesce(p.blame, ''), 'is_forced', false), at
            );
            more := more || found;
            if found is null and p.unfinished = 0 then
                complete := complete || p.id;
            end if;
        elsif p.next_index < p.total and not p.is_stopping then
            if p.unfinished <= p.capacity / 2 then
                perform foliot.refill(p.id, at);
            end if;
        elsif p.unfinished = 0 then
            complete := complete || p.id;
        end if;
    end loop;
    if complete = '{}' then
        return more;
    end if;
    update foliot.parents set finished_at = at where id = any (complete);
    with closed as (
        delete from foliot.runs r using foliot.parents f where f.id = any (complete) and r.id = f.run_id and r.state = 'waiting'
        returning r.*, f.kind as parent_kind, f.blame as culprit, foliot.parent_result(f) as result, case
            when f.failed > 0 then 'failed' when f.cancelled > 0 or f.next_index < f.total then 'cancelled' else 'succeeded'
        end as verdict
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name, reason, payload,
            options, result, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents, fingerprint
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, verdict, queue, task, name,
            case verdict when 'failed' then 'step_failed' when 'cancelled' then coalesce(cancel ->> 'reason', 'cancelled') end,
            payload, options, result,
            case verdict
                when 'failed' then jsonb_build_object(
                    'kind', 'StepFailed',
                    'message', case parent_kind when 'map' then 'an item has failed: ' else 'a step has failed: ' end || coalesce(culprit, '')
                )
                when 'cancelled' then jsonb_build_object('kind', 'Cancelled', 'message', coalesce(cancel ->> 'message', ''))
            end,
            job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents,
            case verdict when 'failed' then md5(task || ': ' || coalesce(name, step, '') || ': ' || coalesce(culprit, '')) end
        from closed
    )
    select more || array_agg(row(
        id, verdict, parent_id, case when verdict <> 'succeeded' then coalesce(step, name, id::text) end, has_dependents
    )::foliot.ending)
    into more from closed;
    return more;
end
$$;

-- All that follows from the end of these runs, in turns, until nothing follows any more.
create function foliot.settle_endings(ended foliot.ending[], at timestamptz) returns void language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
    counted foliot.ending[];
begin
    perform set_config('foliot.is_settling', 'yes', true);
    perform from foliot.parents
    where id = any (array(select p.root_id from foliot.parents p where p.id in (select parent_id from unnest(ended))))
    order by id for update;
    while ended is not null loop
        counted := ended;
        while exists (select from unnest(ended) as e where e.has_dependents) loop
            ended := foliot.settle_dependents(ended, at);
            counted := counted || ended;
        end loop;
        ended := foliot.settle_parents(counted, at);
    end loop;
    perform set_config('foliot.is_settling', '', true);
end
$$;

-- Jobs that depend on other jobs.
--
-- A job with a schedule and dependencies fires runs that wait: for the latest run of each upstream job that was due at or before their own
-- instant. Which one that is can be said only when the upstream's cursor has passed that instant, and it may belong to a shard of another
-- node: until then a row in `links` keeps the question, and `link_runs` answers it. A job with dependencies and no schedule is fired by
-- the end of its upstreams' runs: once each of them has succeeded since it last fired.

create table foliot.job_dependencies (
    job_id uuid not null references foliot.jobs (id) on delete cascade,
    upstream_id uuid not null constraint job_dependencies_keep_upstream references foliot.jobs (id),
    fires boolean not null,
    aging bigint not null,
    succeeded_at timestamptz,
    run_id uuid,
    primary key (job_id, upstream_id)
);
create index job_dependencies_upstream on foliot.job_dependencies (upstream_id);

create table foliot.links (
    run_id uuid not null,
    upstream_id uuid not null,
    tick_at timestamptz not null,
    primary key (run_id, upstream_id)
);

-- Fires the jobs without a schedule for which the last upstream has succeeded. $2 are the runs that did, of the jobs $1.
create function foliot.fire_dependents(upstreams uuid[], run_ids uuid[], at timestamptz) returns void language plpgsql as $$
declare
    job record;
    open_run uuid;
begin
    update foliot.job_dependencies d set succeeded_at = at, run_id = g.run_id
    from unnest(upstreams, run_ids) as g (upstream_id, run_id)
    where d.upstream_id = g.upstream_id and d.fires;
    for job in
        select j.*, d.aging, d.run_ids from foliot.jobs j join (
            select job_id, max(aging) as aging, array_agg(run_id) as run_ids from foliot.job_dependencies
            where job_id in (select job_id from foliot.job_dependencies where upstream_id = any (upstreams) and fires)
            group by job_id having bool_and(succeeded_at is not null)
        ) as d on d.job_id = j.id
        where j.paused_at is null and coalesce(j.runs_left, 1) > 0
        order by j.id for update of j
    loop
        -- Another one may have fired it while we waited for the lock.
        continue when exists (select from foliot.job_dependencies d where d.job_id = job.id and d.succeeded_at is null);
        update foliot.job_dependencies set succeeded_at = null where job_id = job.id;
        select r.id into open_run from foliot.runs r where r.job_id = job.id and job.schedule ->> 'overlap' is distinct from 'allow_all' limit 1;
        if open_run is not null then
            insert into foliot.ticks (job_id, tick_at, noted_at, reason, blocked_by) values (job.id, at, at, 'overlap', open_run);
            continue;
        end if;
        insert into foliot.runs (
            id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, job_id, tick_at, upstream
        )
        values (
            foliot.new_id(at), at, at, (extract(epoch from at) * 1000000)::bigint - job.priority * job.aging, job.priority,
            case when job.options ?| '{concurrency,rate}' then 'held' else 'ready' end,
            case when job.options ?| '{concurrency,rate}' then 'limit' end,
            job.queue, job.task, job.name, job.payload, job.options, job.id, at, job.run_ids
        );
        update foliot.jobs set runs_left = runs_left - 1 where id = job.id and runs_left is not null;
    end loop;
end
$$;

-- Those that nobody waits for and that belong to nothing cost a look at the new rows. The planner can't know how few rows are meant, or made
-- its plan when the tables were small and keeps it: left alone, it reads them whole once in a while. And to plan anew takes longer than to act.
create function foliot.settle() returns trigger language plpgsql as $$
declare
    at timestamptz;
    ended foliot.ending[];
    upstreams uuid[];
    run_ids uuid[];
begin
    if current_setting('foliot.is_settling', true) = 'yes' then
        -- What ends by the settling is counted there.
        return null;
    end if;
    select max(finished_at),
        array_agg(row(
            id, state, parent_id,
            case when state = 'skipped' then error ->> 'upstream' when state <> 'succeeded' then coalesce(step, name, id::text) end,
            has_dependents
        )::foliot.ending) filter (where parent_id is not null or has_dependents),
        array_agg(job_id) filter (where job_id is not null and state = 'succeeded'),
        array_agg(id) filter (where job_id is not null and state = 'succeeded')
    into at, ended, upstreams, run_ids
    from gone where parent_id is not null or has_dependents or job_id is not null;
    if ended is not null then
        perform foliot.settle_endings(ended, at);
    end if;
    if upstreams is not null and exists (select from foliot.job_dependencies where upstream_id = any (upstreams) and fires) then
        perform foliot.fire_dependents(upstreams, run_ids, at);
    end if;
    return null;
end
$$;

create trigger settle after insert on foliot.history referencing new table as gone for each statement execute function foliot.settle();

-- Ties runs to the upstream runs that they wait for, where it can be said by now which ones those are. Returns how many.
create function foliot.link_runs(most bigint, at timestamptz) returns bigint language plpgsql as $$
declare
    link record;
    live record;
    past record;
    number bigint := 0;
begin
    for link in
        select l.* from foliot.links l left join foliot.jobs j on j.id = l.upstream_id
        -- Paused, ended or deleted: nothing more is due.
        where j.id is null or j.fire_at is null or j.next_at > l.tick_at
        order by l.run_id limit most for update of l skip locked
    loop
        select id, tick_at into live from foliot.runs
        where job_id = link.upstream_id and tick_at <= link.tick_at order by tick_at desc limit 1;
        select id, tick_at, state, coalesce(name, id::text) as name into past from foliot.history
        where job_id = link.upstream_id and tick_at <= link.tick_at order by tick_at desc limit 1;
        if live.id is not null and (past.id is null or live.tick_at >= past.tick_at) then
            -- It may end just now: then it is in history at the next look.
            update foliot.runs set has_dependents = true where id = live.id;
            continue when not found;
            insert into foliot.dependencies (upstream_id, run_id) values (live.id, link.run_id);
            update foliot.runs set upstream = upstream || live.id where id = link.run_id and state = 'waiting';
        else
            -- One that has ended counts at once; where there never was one, there is nothing to wait for.
            insert into foliot.dependencies (upstream_id, run_id) values (coalesce(past.id, link.upstream_id), link.run_id);
            update foliot.runs set upstream = upstream || past.id where id = link.run_id and state = 'waiting' and past.id is not null;
            perform foliot.settle_endings(array[row(
                coalesce(past.id, link.upstream_id), coalesce(past.state, 'succeeded'), null,
                case when past.state <> 'succeeded' then past.name end, true
            )::foliot.ending], at);
        end if;
        delete from foliot.links where run_id = link.run_id and upstream_id = link.upstream_id;
        number := number + 1;
    end loop;
    return number;
end
$$;

create or replace view foliot.all_runs as
select id, true as is_live, name, task, queue, state, null::text as reason, priority, attempt, worker_id, job_id, tick_at, rerun_of,
    null::uuid as rerun_as, null::jsonb as error, due_at, created_at, started_at, null::timestamptz as finished_at, parent_id, step
from foliot.runs
union all
select id, false, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as, error, due_at,
    created_at, started_at, finished_at, parent_id, step
from foliot.history;
