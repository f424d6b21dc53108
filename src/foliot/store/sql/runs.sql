-- Reads one run, and moves runs between states. Other files hold the statements that claim, finish, expire, cancel and
-- rescue runs.

-- name: move_runs(ids, target, sources)
-- Moves runs between waiting, scheduled, held and ready. No attempt begins or ends. model/states.py lists the source
-- states.
update foliot.runs
set state = :target::text, held_by = case when :target::text = 'held' then 'limit' end
where id = any (array(select id from foliot.runs where id = any (:ids::uuid[]) and state = any (:sources::text[])
    order by id for update))
returning id

-- name: close_runs(ids, target, reason, sources, now)
-- Ends runs that no worker holds, as cancelled or skipped. Locks the root parents first, in the order in which the
-- settle trigger does.
with roots as materialized (
    select id from foliot.parents
    where id = any (array(select p.root_id from foliot.runs r join foliot.parents p on p.id = r.parent_id
        where r.id = any (:ids::uuid[])))
    order by id for update
), closed as (
    delete from foliot.runs
    where id = any (array(
        select id from foliot.runs
        where id = any (:ids::uuid[]) and state = any (:sources::text[]) and (select count(*) from roots) >= 0
        order by id for update
    ))
    returning *
)
insert into foliot.history ({{run_columns}}, finished_at, state, reason)
select {{run_columns}}, coalesce(:now::timestamptz, clock_timestamp()), :target::text, :reason::text
from closed
returning id

-- name: get_run(run_id, finished_from)
-- One run, live or finished. A single statement sees it in exactly one of the two tables. For a workflow or map, also
-- its progress.
select
    r.id, r.name, r.task, r.queue, r.state, null as reason, r.priority, r.attempt, r.lost, r.worker_id, r.payload,
    r.options,
    null::json as result, a.error, a.output, r.due_at, r.created_at, r.started_at, null::timestamptz as finished_at,
    r.job_id, r.tick_at, r.rerun_of, null::uuid as rerun_as, r.progress, r.cancel, r.unique_key, r.expires_at,
    r.held_by, r.parent_id, r.step,
    r.upstream, p.total, p.total - p.next_index + p.unfinished as unfinished, r.awaits
from foliot.runs r
left join foliot.parents p on p.run_id = r.id
left join lateral (
    select error, output from foliot.attempts where run_id = r.id and finished_at >= :finished_from::timestamptz
    order by token desc limit 1
) a on true
where r.id = :run_id::uuid
union all
select
    id, name, task, queue, state, reason, priority, attempt, lost, worker_id, payload, options,
    result, error, output, due_at, created_at, started_at, finished_at,
    job_id, tick_at, rerun_of, rerun_as, null, null, null, null, null, parent_id, step, upstream, null, null, null
from foliot.history where id = :run_id::uuid and finished_at >= :finished_from::timestamptz
