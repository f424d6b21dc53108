-- Runs that wait for a signal.

-- name: signal_run(run_id, signal, now)
-- held -> ready, or -> held by a limit. A signal that comes early is kept until the run waits for it; a second one
-- changes nothing.
update foliot.runs
set signal = :signal::jsonb, due_at = case when held_by = 'signal' then at else due_at end,
    state = case
        when held_by is distinct from 'signal' then state when foliot.has_limits(options) then 'held' else 'ready'
    end,
    held_by = case when held_by is distinct from 'signal' then held_by when foliot.has_limits(options) then 'limit'
    end
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where id = :run_id::uuid and options ? 'signal' and signal is null and state in ('waiting', 'scheduled', 'held')
    and cancel is null
returning queue, state

-- name: time_out_signals(limit, now)
-- held -> ready for runs whose signal did not come in time. They start, and see that it timed out. A durable function
-- looks for itself.
update foliot.runs
set signal = case when awaits is null then '{"timed_out": true}' else signal end, awaits = null,
    held_by = case when foliot.has_limits(options) then 'limit' end,
    state = case when foliot.has_limits(options) then 'held' else 'ready' end
where id = any (array(
    select id from foliot.runs where held_by = 'signal' and due_at <= (select coalesce(:now::timestamptz,
        clock_timestamp()))
    order by due_at limit :limit::bigint for update skip locked
))
returning queue
