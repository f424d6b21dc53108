-- Ties runs to the upstream runs that they wait for, and returns how many links it resolved.
--
-- A run waits for the latest upstream run that was due at or before its own tick. That run is known only when the
-- upstream's cursor has passed the tick; until then a row in `links` keeps the question.
create or replace function foliot.link_runs(most bigint, at timestamptz) returns bigint language plpgsql as $$
declare
    link record;
    live record;
    past record;
    number bigint := 0;
begin
    for link in
        select l.* from foliot.links l left join foliot.jobs j on j.id = l.upstream_id
        -- An upstream that is paused, ended or deleted fires nothing more.
        where j.id is null or j.fire_at is null or j.next_at > l.tick_at
        order by l.run_id limit most for update of l skip locked
    loop
        select id, tick_at into live from foliot.runs
        where job_id = link.upstream_id and tick_at <= link.tick_at order by tick_at desc limit 1;
        select id, tick_at, state, coalesce(name, id::text) as name into past from foliot.history
        where job_id = link.upstream_id and tick_at <= link.tick_at order by tick_at desc limit 1;
        if live.id is not null and (past.id is null or live.tick_at >= past.tick_at) then
            -- The run may be ending just now. Then the next call finds it in history.
            update foliot.runs set has_dependents = true where id = live.id;
            continue when not found;
            insert into foliot.dependencies (upstream_id, run_id) values (live.id, link.run_id);
            update foliot.runs set upstream = upstream || live.id where id = link.run_id and state = 'waiting';
        else
            -- A run that has ended counts at once. If there never was one, there is nothing to wait for.
            insert into foliot.dependencies (upstream_id, run_id)
            values (coalesce(past.id, link.upstream_id), link.run_id);
            update foliot.runs set upstream = upstream || past.id
            where id = link.run_id and state = 'waiting' and past.id is not null;
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
