-- Idempotency keys: the answer to a request is stored with its key, in the transaction that carries the request out.

-- name: take_key(key, fingerprint, keep_seconds, now)
-- First in its transaction: another request with the same key waits here until this one has committed or rolled back.
-- An expired key is free.
insert into foliot.idempotency as kept (key, fingerprint, answer, expires_at)
select :key::text, :fingerprint::text, 'null', at + :keep_seconds::float8 * interval '1 second'
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
on conflict (key) do update
set fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at
where kept.expires_at <= coalesce(:now::timestamptz, clock_timestamp())
returning true

-- name: take_keys(keys, fingerprint, keep_seconds, now)
-- As take_key, for the messages of a source. Returns the keys that are new. Ordered, so that two deliveries of the same
-- messages can't deadlock.
insert into foliot.idempotency as kept (key, fingerprint, answer, expires_at)
select key, :fingerprint::text, 'null', at + :keep_seconds::float8 * interval '1 second'
from unnest(:keys::text[]) as k (key), (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
order by key
on conflict (key) do update
set fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at
where kept.expires_at <= coalesce(:now::timestamptz, clock_timestamp())
returning key

-- name: keep_answer(key, answer)
-- Last in the transaction that took the key.
update foliot.idempotency set answer = :answer::json where key = :key::text

-- name: find_answer(key, now)
-- The stored answer for this key.
select fingerprint, answer from foliot.idempotency
where key = :key::text and expires_at > coalesce(:now::timestamptz, clock_timestamp())

-- name: forget_answers(limit, now)
-- Deletes a batch of expired keys. Each is locked first, which checks its expiry again; a key that a request is taking
-- is skipped.
delete from foliot.idempotency
where key = any (array(
    select key from foliot.idempotency
    where expires_at <= (select coalesce(:now::timestamptz, clock_timestamp())) order by expires_at limit :limit::bigint
    for update skip locked
))
