-- Tokens, and the record of who did what.

-- name: insert_token
-- Nothing when a living token of that namespace has the name; by itself when it is sent again after a lost answer.
with made as (
    insert into foliot.tokens (id, name, hash, role, namespace, created_at, created_by, created_by_id, expires_at)
    select $1::text, $2::text, $3::bytea, $4::text, $5::text, clock.at, $6::text, $7::text, clock.at + $8::float8 * interval '1 second'
    from (select coalesce($9::timestamptz, clock_timestamp()) as at) as clock
    on conflict do nothing
    returning id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at
)
select *, true as is_valid from made
union all
select id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at, true
from foliot.tokens where id = $1::text

-- name: find_token
-- By the part of it that is no secret, with its hash; and whether it is in force.
select hash, id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at,
    revoked_at is null and coalesce(expires_at > coalesce($2::timestamptz, clock_timestamp()), true) as is_valid
from foliot.tokens where id = $1::text

-- name: list_tokens
-- Those of a namespace, or all of them ($1 null): first those in force.
select id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at,
    revoked_at is null and coalesce(expires_at > coalesce($2::timestamptz, clock_timestamp()), true) as is_valid
from foliot.tokens where $1::text is null or namespace = $1::text
order by revoked_at is not null, namespace, name, created_at limit $3::bigint

-- name: find_tokens_named
-- The one of that id, or else those in force of that name, of a namespace or of all of them ($2 null).
select id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at,
    revoked_at is null and coalesce(expires_at > coalesce($3::timestamptz, clock_timestamp()), true) as is_valid
from foliot.tokens where (id = $1::text or (name = $1::text and revoked_at is null)) and ($2::text is null or namespace = $2::text)
order by id = $1::text desc, namespace limit $4::bigint

-- name: revoke_token
-- Revoked again, it has been since the first time.
update foliot.tokens set revoked_at = coalesce(revoked_at, $2::timestamptz, clock_timestamp()) where id = $1::text
returning id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at, false as is_valid

-- name: has_tokens
-- Whether anybody could get in.
select exists (
    select from foliot.tokens where revoked_at is null and coalesce(expires_at > coalesce($1::timestamptz, clock_timestamp()), true)
)

-- name: note_use
-- When tokens were last used, to the minute: more would be a write for each request.
update foliot.tokens set used_at = coalesce($2::timestamptz, clock_timestamp())
where id = any ($1::text[]) and coalesce(used_at < coalesce($2::timestamptz, clock_timestamp()) - interval '1 minute', true)

-- name: insert_audit
-- Entries of about the same time, at once.
insert into foliot.audit (
    id, at, actor, actor_namespace, token_id, role, namespace, address, request_id, method, path, action, target, status, code
)
select e.id, coalesce($1::timestamptz, clock_timestamp()), e.actor, e.actor_namespace, e.token_id, e.role, e.namespace, e.address, e.request_id,
    e.method, e.path, e.action, e.target, e.status, e.code
from jsonb_to_recordset($2::jsonb) as e (
    id uuid, actor text, actor_namespace text, token_id text, role text, namespace text, address text, request_id text, method text, path text, action text,
    target text, status bigint, code text
)

-- name: insert_missing_audit
-- insert_audit for entries that may be there already, because the answer to their insert got lost: that was moments
-- ago.
insert into foliot.audit (
    id, at, actor, actor_namespace, token_id, role, namespace, address, request_id, method, path, action, target, status, code
)
select e.id, coalesce($1::timestamptz, clock_timestamp()), e.actor, e.actor_namespace, e.token_id, e.role, e.namespace, e.address, e.request_id,
    e.method, e.path, e.action, e.target, e.status, e.code
from jsonb_to_recordset($2::jsonb) as e (
    id uuid, actor text, actor_namespace text, token_id text, role text, namespace text, address text, request_id text, method text, path text, action text,
    target text, status bigint, code text
)
where e.id not in (
    select a.id from foliot.audit a
    where a.at >= (select coalesce($1::timestamptz, clock_timestamp()) - interval '15 minutes')
)

-- name: lock_audit
-- Waits for inserts that are under way: one of them may be that whose answer got lost. Others wait for us, or two of us
-- would for each other.
lock table only foliot.audit in share row exclusive mode

-- name: list_audit
-- Latest first, below a cursor. Looks at $5 entries at the most and says how far it got. Entries from before namespaces
-- of actors were written down get them from their tokens, which are never deleted.
with scanned as materialized (
    select * from foliot.audit
    where at >= $1::timestamptz and at <= $2::timestamptz and (at, id) < ($2::timestamptz, $3::uuid)
    order by at desc, id desc limit $5::bigint
)
select s.count, s.last_at, s.last_id, w.*
from (
    select count(*) as count, (array_agg(at order by at, id))[1] as last_at, (array_agg(id order by at, id))[1] as last_id from scanned
) as s left join (
    select id, at, actor, coalesce(actor_namespace, (select t.namespace from foliot.tokens as t where t.id = token_id)) as actor_namespace,
        token_id, role, namespace, address, request_id, method, path, action, target, status, code
    from scanned
    where ($6::text is null or namespace = $6::text) and ($7::text is null or actor = $7::text) and ($8::text is null or action = $8::text)
        and ($9::text is null or target = $9::text) and ($10::boolean is false or status in (401, 403, 429))
        and ($11::text is null or token_id = $11::text)
    order by at desc, id desc limit $4::bigint
) as w on true
order by w.at desc, w.id desc
