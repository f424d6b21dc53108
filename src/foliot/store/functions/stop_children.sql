-- Ends the children of a parent that stops, and returns them.
--
-- Running children are only marked as cancelled. Children with the rule `always` still run. Rows that another
-- transaction has locked are skipped here and left to the query spread_cancels.
create or replace function foliot.stop_children(stopped_id uuid, why jsonb, at timestamptz) returns foliot.ending[]
language plpgsql as $$
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
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name,
            reason, payload,
            options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, 'cancelled', queue, task, name,
            why ->> 'reason',
            payload, options, jsonb_build_object('kind', 'Cancelled', 'message', why ->> 'message'), job_id, tick_at,
            rerun_of, parent_id,
            step, upstream, has_dependents
        from closed
    )
    select array_agg(row(id, 'cancelled', parent_id, step, has_dependents)::foliot.ending) into ended from closed;
    return ended;
end
$$;
