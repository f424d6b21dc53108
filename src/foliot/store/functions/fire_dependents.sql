-- Fires the jobs without a schedule whose last upstream job has now succeeded.
--
-- `run_ids` are the runs that succeeded, in the order of their jobs in `upstreams`. Upstreams that end at the same time
-- do not see each other's uncommitted success, so each transaction first locks the rows of the waiting jobs, in order
-- of id.
create or replace function foliot.fire_dependents(upstreams uuid[], run_ids uuid[], at timestamptz) returns void
language plpgsql as $$
declare
    job record;
    open_run uuid;
    upstream_tick jsonb;
begin
    -- In a statement of its own, so that the statements below see what the previous holder of the lock has written.
    perform 1 from foliot.jobs
    where id in (select job_id from foliot.job_dependencies where upstream_id = any (upstreams) and fires)
    order by id for no key update;
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
        order by j.id
    loop
        update foliot.job_dependencies set succeeded_at = null where job_id = job.id;
        select r.id into open_run from foliot.runs r
        where r.job_id = job.id and job.schedule ->> 'overlap' is distinct from 'allow_all' limit 1;
        if open_run is not null then
            insert into foliot.ticks (job_id, tick_at, noted_at, reason, blocked_by)
            values (job.id, at, at, 'overlap', open_run);
            continue;
        end if;
        -- The tick of the upstream run, so that a backfill of the upstream reaches this job too. Of several, the latest.
        select options -> 'tick' into upstream_tick from foliot.history
        where id = any (job.run_ids) and finished_at >= at - interval '1 day' and options ? 'tick'
        order by options #> '{tick,at}' desc limit 1;
        insert into foliot.runs (
            id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, job_id,
            tick_at, upstream
        )
        values (
            foliot.new_id(at), at, at, (extract(epoch from at) * 1000000)::bigint - job.priority * job.aging,
            job.priority,
            case when foliot.has_limits(job.options) then 'held' else 'ready' end,
            case when foliot.has_limits(job.options) then 'limit' end,
            job.queue, job.task, job.name, job.payload,
            foliot.with_tick(
                job.options, coalesce((upstream_tick ->> 'at')::float8, extract(epoch from at)::float8),
                (upstream_tick ->> 'previous')::float8, (upstream_tick ->> 'next')::float8, upstream_tick ->> 'origin',
                case when upstream_tick is null then job.schedule
                    else jsonb_build_object('timezone', upstream_tick -> 'zone') end, job.name, job.id
            ), job.id, at, job.run_ids
        );
        update foliot.jobs set runs_left = runs_left - 1 where id = job.id and runs_left is not null;
        perform foliot.note_count('submitted', 1);
    end loop;
end
$$;
