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

-- All that follows from the end of these runs, in turns, until nothing follows any more.
create function foliot.settle_endings(ended foliot.ending[], at timestamptz) returns void language plpgsql as $$
declare
    counted foliot.ending[];
begin
    perform set_config('foliot.is_settling', 'yes', true);
    -- One at a time in each workflow: whatever is locked below is locked in the order of its arrows.
    perform from foliot.parents where id in (select parent_id from unnest(ended)) order by id for update;
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

create or replace function foliot.settle() returns trigger language plpgsql as $$
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
