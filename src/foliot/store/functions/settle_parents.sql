-- Counts ended runs for their parents, and returns the runs that end as a consequence.
--
-- These are the other children of a parent that fails fast, and parents whose children have all ended.
create or replace function foliot.settle_parents(ended foliot.ending[], at timestamptz) returns foliot.ending[]
language plpgsql as $$
declare
    p record;
    complete uuid[] := '{}';
    more foliot.ending[];
    found foliot.ending[];
begin
    for p in
        with counted as (
            select parent_id, count(*) as number, count(*) filter (where state = 'succeeded') as succeeded,
                count(*) filter (where state = 'failed') as failed,
                count(*) filter (where state = 'cancelled') as cancelled,
                count(*) filter (where state = 'skipped') as skipped,
                min(blame) filter (where state = 'failed') as blame
            from unnest(ended) where parent_id is not null group by parent_id
        ), locked as materialized (
            select id from foliot.parents where id = any (array(select parent_id from counted)) order by id for update
        )
        update foliot.parents u
        set unfinished = u.unfinished - c.number, succeeded = u.succeeded + c.succeeded, failed = u.failed + c.failed,
            cancelled = u.cancelled + c.cancelled, skipped = u.skipped + c.skipped, blame = coalesce(u.blame, c.blame)
        from counted c join locked on locked.id = c.parent_id
        where u.id = c.parent_id
        returning u.id, u.kind, u.unfinished, u.next_index, u.total, u.capacity, u.stop is not null as is_stopping,
            u.blame,
            u.on_failure = 'fail_fast' and u.failed > 0 and u.stop is null as begins_to_stop
    loop
        if p.begins_to_stop then
            found := foliot.stop_children(
                p.id,
                jsonb_build_object('reason', 'fail_fast', 'message', 'another has failed: ' || coalesce(p.blame, ''),
                    'is_forced', false), at
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
        delete from foliot.runs r using foliot.parents f
        where f.id = any (complete) and r.id = f.run_id and r.state = 'waiting'
        returning r.*, f.kind as parent_kind, f.blame as culprit, foliot.parent_result(f) as result, case
            when f.failed > 0 then 'failed'
            when f.cancelled > 0 or f.next_index < f.total then 'cancelled'
            else 'succeeded'
        end as verdict
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name,
            reason, payload,
            options, result, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents, fingerprint
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, verdict, queue, task, name,
            case verdict
                when 'failed' then 'step_failed'
                when 'cancelled' then coalesce(cancel ->> 'reason', 'cancelled')
            end,
            payload, options, result,
            case verdict
                when 'failed' then jsonb_build_object(
                    'kind', 'StepFailed',
                    'message',
                    case parent_kind when 'map' then 'an item has failed: ' else 'a step has failed: ' end
                        || coalesce(culprit, '')
                )
                when 'cancelled' then jsonb_build_object('kind', 'Cancelled', 'message',
                    coalesce(cancel ->> 'message', ''))
            end,
            job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents,
            case verdict when 'failed' then md5(task || ': ' || coalesce(name, step, '') || ': '
                || coalesce(culprit, '')) end
        from closed
    )
    select more || array_agg(row(
        id, verdict, parent_id, case when verdict <> 'succeeded' then coalesce(step, name, id::text) end, has_dependents
    )::foliot.ending)
    into more from closed;
    return more;
end
$$;
