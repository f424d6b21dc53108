-- Disabled built-in tasks.

-- name: put_disabled_task(namespace, task, actor, reason, is_imposed, now)
-- Disabling again keeps the time of the first, and an imposed one stays imposed.
insert into foliot.disabled_tasks as d (namespace, task, disabled_at, disabled_by, reason, is_imposed)
select :namespace::text, :task::text, coalesce(:now::timestamptz, clock_timestamp()), :actor::text, :reason::text,
    :is_imposed::boolean
on conflict (namespace, task) do update
set reason = coalesce(excluded.reason, d.reason), is_imposed = d.is_imposed or excluded.is_imposed

-- name: delete_disabled_task(namespace, task, may_lift)
-- Deletes an imposed entry only if the caller may lift it (:may_lift).
delete from foliot.disabled_tasks
where namespace = :namespace::text and task = :task::text and (:may_lift::boolean or not is_imposed)

-- name: list_disabled_tasks(namespace)
-- Entries of a namespace, and those for all namespaces.
select namespace, task, disabled_at, disabled_by, reason, is_imposed
from foliot.disabled_tasks where namespace in ('*', :namespace::text) order by task, namespace
