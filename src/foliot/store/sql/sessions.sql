-- Sessions of browsers, and the namespaces that a caller may choose from.

-- name: insert_session(hash, token_id, life_seconds, now)
-- The hash is random, so a statement that is sent again after a lost answer finds its own row.
insert into foliot.sessions (hash, token_id, created_at, used_at, expires_at)
select :hash::bytea, :token_id::text, at, at, at + :life_seconds::float8 * interval '1 second'
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
on conflict (hash) do nothing

-- name: find_session(hash, idle_seconds, now)
-- The token of a session that has not ended, and when the session ends without further requests.
select t.id, t.name, t.role, t.namespace, t.created_at, t.created_by, t.created_by_id, t.expires_at, t.revoked_at,
    t.used_at,
    t.revoked_at is null and coalesce(t.expires_at > clock.at, true) and s.expires_at > clock.at
        and s.used_at > clock.at - :idle_seconds::float8 * interval '1 second' as is_valid,
    least(s.expires_at, t.expires_at) as ends_at
from foliot.sessions s join foliot.tokens t on t.id = s.token_id,
    (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where s.hash = :hash::bytea

-- name: note_session_use(hash, now)
-- To the minute, because every request would otherwise be a write.
update foliot.sessions set used_at = coalesce(:now::timestamptz, clock_timestamp())
where hash = :hash::bytea and used_at < coalesce(:now::timestamptz, clock_timestamp()) - interval '1 minute'

-- name: delete_session(hash)
-- A sign-out ends the session at once.
delete from foliot.sessions where hash = :hash::bytea

-- name: forget_sessions(limit, now)
-- Sessions that have ended by age, at most :limit of them.
delete from foliot.sessions where hash = any (array(
    select hash from foliot.sessions where expires_at <= coalesce(:now::timestamptz, clock_timestamp())
    order by expires_at limit :limit::bigint
))

-- name: list_namespaces(limit)
-- Every namespace with a token, a task or a queue. These tables are small: one row for each name that somebody chose.
select distinct name from (
    (select namespace as name from foliot.tokens where namespace <> '*' and revoked_at is null limit :limit::bigint)
    union all
    (select foliot.namespace_of(name) from foliot.tasks limit :limit::bigint)
    union all
    (select foliot.namespace_of(name) from foliot.queues limit :limit::bigint)
) as known order by name
