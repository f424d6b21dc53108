-- Settles everything that follows from the end of runs, in the transaction that inserts them into history.
--
-- Every statement that ends a run inserts it into history, so no statement can forget to settle. A plain run, without
-- dependents, parent, job or limits, costs one look at the new rows.
create or replace function foliot.settle() returns trigger language plpgsql as $$
declare
    at timestamptz;
    ended foliot.ending[];
    upstreams uuid[];
    run_ids uuid[];
    has_limits boolean;
begin
    select max(finished_at),
        array_agg(row(
            id, state, parent_id,
            case
                when state = 'skipped' then error ->> 'upstream'
                when state <> 'succeeded' then coalesce(step, name, id::text)
            end,
            has_dependents
        )::foliot.ending) filter (where parent_id is not null or has_dependents),
        array_agg(job_id) filter (where job_id is not null and state = 'succeeded'),
        array_agg(id) filter (where job_id is not null and state = 'succeeded'),
        bool_or(foliot.has_limits(options))
    into at, ended, upstreams, run_ids, has_limits
    from gone where parent_id is not null or has_dependents or job_id is not null or foliot.has_limits(options);
    if has_limits then
        -- Without a look for runs that wait for the key: one that begins to wait just now cannot be seen from here.
        insert into foliot.turns (kind, key, look_at)
        select distinct 'concurrency', options #>> '{concurrency,key}', '-infinity'::timestamptz
        from gone where options #>> '{concurrency,key}' is not null
        union all
        -- A run that started has used its place in the rate. A run that did not start may have been ahead of others.
        select distinct 'rate', options #>> '{rate,key}', '-infinity'::timestamptz
        from gone where options #>> '{rate,key}' is not null and started_at is null;
    end if;
    if ended is not null and current_setting('foliot.is_settling', true) is distinct from 'yes' then
        perform foliot.settle_endings(ended, at);
    end if;
    if upstreams is not null and exists (
        select from foliot.job_dependencies where upstream_id = any (upstreams) and fires
    ) then
        perform foliot.fire_dependents(upstreams, run_ids, at);
    end if;
    return null;
end
$$;

create or replace trigger settle after insert on foliot.history
referencing new table as gone for each statement execute function foliot.settle();
