-- Says whether a built-in task is disabled in its namespace.
--
-- Most installations disable nothing, and pay for one look at an empty table.
create or replace function foliot.is_disabled(qualified text) returns boolean language sql stable parallel safe
return exists (select from foliot.disabled_tasks) and exists (
    select from foliot.disabled_tasks d
    where d.task = foliot.bare(qualified) and d.namespace in ('*', foliot.namespace_of(qualified))
);
