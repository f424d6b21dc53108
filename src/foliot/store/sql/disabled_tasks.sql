-- Tasks that are turned off.

-- name: put_disabled_task(namespace, task, actor, reason, is_imposed, now)
-- Turned off again, it has been since the first time. What was imposed stays so.
insert into foliot.disabled_tasks as d (namespace, task, disabled_at, disabled_by, reason, is_imposed)
select :namespace::text, :task::text, coalesce(:now::timestamptz, clock_timestamp()), :actor::text, :reason::text,
    :is_imposed::boolean
on conflict (namespace, task) do update
set reason = coalesce(excluded.reason, d.reason), is_imposed = d.is_imposed or excluded.is_imposed

-- name: delete_disabled_task(namespace, task, may_lift)
-- Not what was imposed, unless the caller (:may_lift) may.
delete from foliot.disabled_tasks
where namespace = :namespace::text and task = :task::text and (:may_lift::boolean or not is_imposed)

-- name: list_disabled_tasks(namespace)
-- Those of a namespace, and of all namespaces.
select namespace, task, disabled_at, disabled_by, reason, is_imposed
from foliot.disabled_tasks where namespace in ('*', :namespace::text) order by task, namespace
