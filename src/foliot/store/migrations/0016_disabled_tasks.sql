-- works beside: 12
-- Built-in tasks that are turned off in a namespace, or with the namespace `*` in all of them. `is_imposed`: by somebody whose token is for
-- all namespaces; only such a one can turn it on again.

create table foliot.disabled_tasks (
    namespace text not null,
    task text not null,
    disabled_at timestamptz not null,
    disabled_by text not null,
    reason text,
    is_imposed boolean not null,
    primary key (namespace, task)
);

-- Most installations turn nothing off, and pay for one look at an empty table.
create function foliot.is_disabled(qualified text) returns boolean language sql stable parallel safe
return exists (select from foliot.disabled_tasks) and exists (
    select from foliot.disabled_tasks d
    where d.task = foliot.bare(qualified) and d.namespace in ('*', foliot.namespace_of(qualified))
);

-- The function that submits from SQL refuses such a task. All else that it does stays as it is, whichever migration said so last.
do $migration$
declare
    known text := pg_get_functiondef('foliot.submit(jsonb)'::regprocedure);
    place constant text := 'asked.task := foliot.qualified(space, asked.task);';
begin
    if strpos(known, place) = 0 then
        raise exception 'foliot.submit does not look as expected';
    end if;
    execute replace(known, place, place || $check$
    if foliot.is_disabled(asked.task) then
        raise exception 'task: % is disabled in the namespace %', quote_literal(foliot.bare(asked.task)), quote_literal(space)
            using errcode = 'insufficient_privilege';
    end if;$check$);
end
$migration$;
