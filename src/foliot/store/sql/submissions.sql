-- Jobs that carry a key: of the request, so that repeating it makes no second one, or of the run, of which only one may
-- be live.

-- name: take_key(key, fingerprint, keep_seconds, now)
-- First in its transaction: whoever else comes with the same key waits here until it is known what became of it. An
-- expired key is free.
insert into foliot.idempotency as kept (key, fingerprint, answer, expires_at)
select :key::text, :fingerprint::text, 'null', at + :keep_seconds::float8 * interval '1 second'
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
on conflict (key) do update
set fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at
where kept.expires_at <= coalesce(:now::timestamptz, clock_timestamp())
returning true

-- name: keep_answer(key, answer)
-- Last in the transaction that took the key.
update foliot.idempotency set answer = :answer::json where key = :key::text

-- name: find_answer(key, now)
-- What a request with this key was answered before.
select fingerprint, answer from foliot.idempotency
where key = :key::text and expires_at > coalesce(:now::timestamptz, clock_timestamp())

-- name: forget_answers(limit, now)
-- Keys whose time is over, some at a time. Each is locked first, which checks its time again; one that a request is
-- renewing is stepped over.
delete from foliot.idempotency
where key = any (array(
    select key from foliot.idempotency
    where expires_at <= (select coalesce(:now::timestamptz, clock_timestamp())) order by expires_at limit :limit::bigint
    for update skip locked
))

-- name: find_unique_run(key)
-- The one live run with this key.
select id, name, task, queue, priority, state, attempt, due_at, created_at from foliot.runs
where unique_key = :key::text

-- name: replace_run(
--     unique_key, task, queue, name, priority, due_at, delay_seconds, payload, options, expires_at, now, aging
-- )
-- The live run with this key becomes what is asked for now, unless it has started, or is being cancelled. Its state is
-- that of a new run; only what waits for other runs goes on waiting for them. A signal that came was for what it was
-- before, and so was the choice of a circuit's probe. What waits for the same limits as it did moves up.
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
