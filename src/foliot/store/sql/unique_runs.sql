-- Unique keys: at most one live run has a key.

-- name: find_unique_run(key)
-- The live run with this key.
select id, name, task, queue, priority, state, attempt, due_at, created_at from foliot.runs
where unique_key = :key::text

-- name: replace_run(
--     unique_key, task, queue, name, priority, due_at, delay_seconds, payload, options, expires_at, now, aging
-- )
-- Replaces the live run with this key by the new request, unless it has started or is being cancelled. Its state is
-- that of a new run, but a run that waits for others keeps waiting for them. Its signal and its mark as a probe
-- belonged to the old request. Runs that wait for the same limits move up.
with old as materialized (
    select id, options #>> '{concurrency,key}' as concurrency_key, options #>> '{rate,key}' as rate_key from foliot.runs
    where unique_key = :unique_key::text and state <> 'running' and started_at is null and cancel is null
    for update
), replaced as (
    update foliot.runs r
    set task = :task::text, queue = :queue::text, name = :name::text, priority = :priority::bigint,
        payload = :payload::jsonb, options = :options::jsonb,
        expires_at = :expires_at::timestamptz, signal = null, is_probe = null,
        due_at = case when :options::jsonb ? 'signal' then timed.at + foliot.signal_wait(:options::jsonb) else timed.due
        end,
        rank = (extract(epoch from timed.due) * 1000000)::bigint - :priority::bigint * :aging::bigint,
        state = case
            when r.state = 'waiting' then r.state when timed.due > timed.at then 'scheduled'
            when :options::jsonb ?| '{concurrency,rate,signal}' then 'held' else 'ready'
        end,
        held_by = case
            when r.state = 'waiting' or timed.due > timed.at then null when :options::jsonb ? 'signal' then 'signal'
            when foliot.has_limits(:options::jsonb) then 'limit'
        end
    from old, (
        select at, greatest(at, coalesce(:due_at::timestamptz, at + :delay_seconds::float8 * interval '1 second',
            at)) as due
        from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    ) as timed
    where r.id = old.id
    returning r.id, r.name, r.task, r.queue, r.priority, r.state, r.attempt, r.due_at, r.created_at
), freed as (
    insert into foliot.turns (kind, key, look_at)
    select 'concurrency', concurrency_key, '-infinity'::timestamptz from old where concurrency_key is not null
    union all
    select 'rate', rate_key, '-infinity' from old where rate_key is not null
)
select * from replaced
