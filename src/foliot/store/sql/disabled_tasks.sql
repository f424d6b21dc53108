-- Tasks that are turned off.

-- name: put_disabled_task
-- Turned off again, it has been since the first time. What was imposed stays so.
insert into foliot.disabled_tasks as d (namespace, task, disabled_at, disabled_by, reason, is_imposed)
select $1::text, $2::text, coalesce($6::timestamptz, clock_timestamp()), $3::text, $4::text, $5::boolean
on conflict (namespace, task) do update set reason = coalesce(excluded.reason, d.reason), is_imposed = d.is_imposed or excluded.is_imposed

-- name: delete_disabled_task
-- Not what was imposed, unless the caller ($3) may.
delete from foliot.disabled_tasks where namespace = $1::text and task = $2::text and ($3::boolean or not is_imposed)

-- name: list_disabled_tasks
-- Those of a namespace, and of all namespaces.
select namespace, task, disabled_at, disabled_by, reason, is_imposed
from foliot.disabled_tasks where namespace in ('*', $1::text) order by task, namespace
