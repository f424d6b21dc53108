-- Runs for ticks of the past.

-- name: insert_backfill(job_id, run_ids, ticks, state, aging, now, previous_ticks, following_ticks)
-- The runs are due now, because nobody was late with them. A tick that already has a run, live or finished, is skipped:
-- the run's id derives from the tick.
insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options,
    job_id, tick_at)
select t.run_id, at, at, (extract(epoch from at) * 1000000)::bigint - j.priority * :aging::bigint + t.ordinal,
    j.priority,
    case when foliot.has_limits(j.options) then 'held' else :state::text end,
    case when :state::text = 'held' then 'overlap' when foliot.has_limits(j.options) then 'limit'
        end, j.queue, j.task, j.name, j.payload,
    foliot.with_tick(j.options, extract(epoch from t.tick_at)::float8, t.previous, t.following, 'backfill', j.schedule,
        j.name, j.id), j.id, t.tick_at
from foliot.jobs j, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock,
    unnest(:run_ids::uuid[], :ticks::timestamptz[], :previous_ticks::bigint[], :following_ticks::bigint[])
        with ordinality as t (run_id, tick_at, previous, following, ordinal)
where j.id = :job_id::uuid and not exists (select from foliot.history h where h.job_id = j.id and h.tick_at = t.tick_at)
on conflict (id) do nothing
returning tick_at

-- name: remove_fired(job_id, ticks, run_ids)
-- Removes runs inserted in this transaction whose tick's first run ended between the look into history and the insert,
-- where the key could no longer meet it.
delete from foliot.runs r
where r.job_id = :job_id::uuid and r.tick_at = any (:ticks::timestamptz[]) and r.id = any (:run_ids::uuid[])
    and exists (select from foliot.history h where h.job_id = r.job_id and h.tick_at = r.tick_at)
returning tick_at

-- name: find_fired(job_id, ticks)
-- The ticks among these that have a run.
select tick_at from foliot.runs where job_id = :job_id::uuid and tick_at = any (:ticks::timestamptz[])
union all
select tick_at from foliot.history where job_id = :job_id::uuid and tick_at = any (:ticks::timestamptz[])
