-- The audit log.

-- name: insert_audit(audited_at, entries)
-- Entries of about the same time, in one statement.
insert into foliot.audit (
    id, at, actor, actor_namespace, token_id, role, namespace, address, request_id, method, path, action, target,
    status, code
)
select e.id, coalesce(:audited_at::timestamptz, clock_timestamp()), e.actor, e.actor_namespace, e.token_id, e.role,
    e.namespace, e.address, e.request_id,
    e.method, e.path, e.action, e.target, e.status, e.code
from jsonb_to_recordset(:entries::jsonb) as e (
    id uuid, actor text, actor_namespace text, token_id text, role text, namespace text, address text, request_id text,
    method text, path text, action text,
    target text, status bigint, code text
)

-- name: insert_missing_audit(audited_at, entries)
-- insert_audit for entries that may exist already, because the answer to their insert got lost moments ago.
insert into foliot.audit (
    id, at, actor, actor_namespace, token_id, role, namespace, address, request_id, method, path, action, target,
    status, code
)
select e.id, coalesce(:audited_at::timestamptz, clock_timestamp()), e.actor, e.actor_namespace, e.token_id, e.role,
    e.namespace, e.address, e.request_id,
    e.method, e.path, e.action, e.target, e.status, e.code
from jsonb_to_recordset(:entries::jsonb) as e (
    id uuid, actor text, actor_namespace text, token_id text, role text, namespace text, address text, request_id text,
    method text, path text, action text,
    target text, status bigint, code text
)
where e.id not in (
    select a.id from foliot.audit a
    where a.at >= (select coalesce(:audited_at::timestamptz, clock_timestamp()) - interval '15 minutes')
)

-- name: lock_audit
-- Waits for running inserts, because one of them may be the one whose answer got lost. A weaker lock would not conflict
-- with itself: two transactions could hold it, and then wait for each other.
lock table only foliot.audit in share row exclusive mode

-- name: list_audit(since, before_at, before_id, limit, scan, namespace, actor, action, target, is_denied, token_id)
-- Latest first, below a cursor. Looks at :scan entries, and reports how far it got. Old entries without the actor's
-- namespace get it from the token, because tokens are never deleted.
with scanned as materialized (
    select * from foliot.audit
    where at >= :since::timestamptz and at <= :before_at::timestamptz
        and (at, id) < (:before_at::timestamptz, :before_id::uuid)
    order by at desc, id desc limit :scan::bigint
)
select s.count, s.last_at, s.last_id, w.*
from (
    select count(*) as count, (array_agg(at order by at, id))[1] as last_at,
        (array_agg(id order by at, id))[1] as last_id from scanned
) as s left join (
    select id, at, actor, coalesce(actor_namespace,
        (select t.namespace from foliot.tokens as t where t.id = token_id)) as actor_namespace,
        token_id, role, namespace, address, request_id, method, path, action, target, status, code
    from scanned
    where (:namespace::text is null or namespace = :namespace::text) and (:actor::text is null or actor = :actor::text)
        and (:action::text is null or action = :action::text)
        and (:target::text is null or target = :target::text)
        and (:is_denied::boolean is false or status in (401, 403, 429))
        and (:token_id::text is null or token_id = :token_id::text)
    order by at desc, id desc limit :limit::bigint
) as w on true
order by w.at desc, w.id desc
