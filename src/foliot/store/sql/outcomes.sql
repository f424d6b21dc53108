-- Writes the outcomes of attempts. Each statement is fenced by run, token and worker, so a late write changes nothing.

-- name: finish_runs(worker_id, ids, tokens, states, reasons, results, errors, outputs, now, patterns)
-- running -> succeeded | failed | cancelled | skipped: moves runs from `runs` to `history`.
-- The pattern of a failure (:patterns) is what its message has in common with similar ones. Only a running run has a
-- worker, so the state is not compared: that would lead the planner to read everything that the worker runs.
with outcome as (
    select * from unnest(:ids::uuid[], :tokens::text::bigint[], :states::text[], :reasons::text[], :results::json[],
        :errors::jsonb[], :outputs::bytea[], :patterns::text[])
    as o (id, token, state, reason, result, error, output, pattern)
), finished as (
    delete from foliot.runs r using outcome o
    where r.id = o.id and r.token = o.token and r.worker_id = :worker_id::uuid
    returning r.id, r.created_at, r.due_at, r.started_at, r.token, r.attempt, r.lost, r.priority, r.worker_id, o.state,
        r.queue,
        r.task, r.name, o.reason, r.payload, r.options, o.result, o.error, o.output, r.job_id, r.tick_at,
        r.rerun_of, r.parent_id, r.step, r.upstream, r.has_dependents, md5(r.task || ': ' || o.pattern) as fingerprint
)
insert into foliot.history ({{run_columns}}, finished_at, worker_id, state, reason, result, error, output, fingerprint)
select {{run_columns}},
    coalesce(:now::timestamptz, clock_timestamp()), worker_id, state, reason, result, error, output, fingerprint
from finished

-- name: succeed_runs(worker_id, ids, tokens, results, now)
-- finish_runs for most batches: every run succeeded and left nothing but a result.
with outcome as (
    select * from unnest(:ids::uuid[], :tokens::text::bigint[], :results::json[]) as o (id, token, result)
), finished as (
    delete from foliot.runs r using outcome o
    where r.id = o.id and r.token = o.token and r.worker_id = :worker_id::uuid
    returning r.id, r.created_at, r.due_at, r.started_at, r.token, r.attempt, r.lost, r.priority, r.worker_id, r.queue,
        r.task, r.name,
        r.payload, r.options, o.result, r.job_id, r.tick_at, r.rerun_of, r.parent_id, r.step, r.upstream,
        r.has_dependents
)
insert into foliot.history ({{run_columns}}, finished_at, worker_id, state, result)
select {{run_columns}}, coalesce(:now::timestamptz, clock_timestamp()), worker_id, 'succeeded', result
from finished

-- name: retry_runs(worker_id, ids, tokens, outcomes, delays, errors, outputs, now, aging)
-- running -> scheduled: keeps a row for the attempt, and schedules the next one. A snoozed attempt is counted but not
-- consumed. A probe has decided, so it waits for the circuit like other runs. A run with a concurrency key frees its
-- place, so its key gets a turn in foliot.turns.
with outcome as (
    select o.*, coalesce(:now::timestamptz, clock_timestamp()) as at
    from unnest(:ids::uuid[], :tokens::bigint[], :outcomes::text[], :delays::float8[], :errors::jsonb[],
        :outputs::bytea[])
    as o (id, token, outcome, delay_seconds, error, output)
), held as (
    select r.id, r.token, r.attempt, r.worker_id, r.started_at, r.priority, o.outcome, o.error, o.output, o.at,
        o.at + o.delay_seconds * interval '1 second' as due, r.options #>> '{concurrency,key}' as concurrency_key
    from foliot.runs r join outcome o on r.id = o.id
    where r.token = o.token and r.worker_id = :worker_id::uuid and r.state = 'running'
    for update of r
), kept as (
    insert into foliot.attempts (run_id, token, attempt, worker_id, started_at, finished_at, outcome, error, output)
    select id, token, attempt, worker_id, started_at, at, outcome, error, output from held
), freed as (
    insert into foliot.turns (kind, key, look_at)
    select distinct 'concurrency', concurrency_key, '-infinity'::timestamptz from held where concurrency_key is not null
)
update foliot.runs r
set state = 'scheduled', worker_id = null, is_probe = null, due_at = held.due,
    attempt = r.attempt - (held.outcome = 'snoozed')::int,
    options = case
        when held.outcome <> 'snoozed' then r.options
        else jsonb_set(coalesce(r.options, '{}'), '{snoozes}',
            to_jsonb(coalesce((r.options ->> 'snoozes')::bigint, 0) + 1))
    end,
    rank = (extract(epoch from held.due) * 1000000)::bigint - held.priority * :aging::bigint
from held where r.id = held.id

-- name: release_runs(worker_id, ids, tokens)
-- running -> ready, for a worker that shuts down. The attempt is not consumed, but its token is never used again. A run
-- that had an earlier attempt stays started, so it can't expire.
update foliot.runs r
set state = 'ready', worker_id = null, attempt = r.attempt - 1,
    started_at = case
        when r.attempt > 1 or r.options ? 'snoozes'
            or exists (select from foliot.checkpoints c where c.run_id = r.id) then r.started_at
    end
from unnest(:ids::uuid[], :tokens::bigint[]) as o (id, token)
where r.id = o.id and r.token = o.token and r.worker_id = :worker_id::uuid and r.state = 'running'

-- name: count_written(ids, tokens, worker_id, finished_from)
-- Of outcomes that matched no live attempt, counts those that were written before, by a statement whose answer got
-- lost.
select count(*) from unnest(:ids::uuid[], :tokens::bigint[]) as o (id, token)
where exists (
    select from foliot.history h
    where h.id = o.id and h.token = o.token and h.worker_id = :worker_id::uuid
        and h.finished_at >= :finished_from::timestamptz
)
or exists (select from foliot.runs r where r.id = o.id and r.token = o.token and r.state <> 'running')

-- name: note_refused(ids, tokens, worker_id, finished_from, now)
-- Notes when a worker first reported the outcome of an attempt that counts as lost. The outcome changes nothing.
update foliot.attempts a set refused_at = coalesce(:now::timestamptz, clock_timestamp())
from unnest(:ids::uuid[], :tokens::bigint[]) as o (id, token)
where a.run_id = o.id and a.token = o.token and a.worker_id = :worker_id::uuid and a.outcome = 'lost'
    and a.refused_at is null and a.finished_at >= :finished_from::timestamptz
