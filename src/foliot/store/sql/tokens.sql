-- Access tokens.

-- name: insert_token(id, name, hash, role, namespace, created_by, created_by_id, lives_seconds, now)
-- Returns nothing if a token of the namespace that was not revoked has the name. A repeated insert after a lost answer
-- finds its own row.
with made as (
    insert into foliot.tokens (id, name, hash, role, namespace, created_at, created_by, created_by_id, expires_at)
    select :id::text, :name::text, :hash::bytea, :role::text, :namespace::text, clock.at, :created_by::text,
        :created_by_id::text, clock.at + :lives_seconds::float8 * interval '1 second'
    from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    on conflict do nothing
    returning id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at
)
select *, true as is_valid from made
union all
select id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at, true
from foliot.tokens where id = :id::text

-- name: find_token(token_id, now)
-- By the id, which is the public part of the token.
select hash, id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at,
    revoked_at is null and coalesce(expires_at > coalesce(:now::timestamptz, clock_timestamp()), true) as is_valid
from foliot.tokens where id = :token_id::text

-- name: list_tokens(namespace, now, limit)
-- Tokens of one namespace, or of all (null), valid ones first.
select id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at,
    revoked_at is null and coalesce(expires_at > coalesce(:now::timestamptz, clock_timestamp()), true) as is_valid
from foliot.tokens where :namespace::text is null or namespace = :namespace::text
order by revoked_at is not null, namespace, name, created_at limit :limit::bigint

-- name: find_tokens_named(reference, namespace, now, limit)
-- The token with this id, or else the valid tokens with this name, in one namespace or in all (null).
select id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at,
    revoked_at is null and coalesce(expires_at > coalesce(:now::timestamptz, clock_timestamp()), true) as is_valid
from foliot.tokens where (id = :reference::text
    or (name = :reference::text and revoked_at is null)) and (:namespace::text is null or namespace = :namespace::text)
order by id = :reference::text desc, namespace limit :limit::bigint

-- name: revoke_token(token_id, now)
-- A second revocation does not change the time of the first.
update foliot.tokens set revoked_at = coalesce(revoked_at, :now::timestamptz, clock_timestamp())
where id = :token_id::text
returning id, name, role, namespace, created_at, created_by, created_by_id, expires_at, revoked_at, used_at,
    false as is_valid

-- name: has_tokens(now)
-- Whether any valid token exists.
select exists (
    select from foliot.tokens where revoked_at is null and coalesce(expires_at > coalesce(:now::timestamptz,
        clock_timestamp()), true)
)

-- name: note_use(token_ids, now)
-- To the minute, because every request would otherwise be a write.
update foliot.tokens set used_at = coalesce(:now::timestamptz, clock_timestamp())
where id = any (:token_ids::text[])
    and coalesce(used_at < coalesce(:now::timestamptz, clock_timestamp()) - interval '1 minute', true)
