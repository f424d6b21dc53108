-- works beside: 12
-- What a task declares holds for its jobs whichever way they come in. Runs that the database itself makes and ends are counted, too.

-- Tags that the task gives to jobs which say nothing about tags: a list, or null.
alter table foliot.tasks add column tags jsonb;

-- Counts that are written inside a transaction of somebody else's. Rows are only added, so nobody waits for anybody; whoever adds to the
-- tallies takes them along. After a crash too little is counted, never too much.
create unlogged table foliot.counted (
    name text not null,
    value double precision not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- With the rights of its owner, so that a role which may call foliot.submit needs no further ones. What the names in its body mean was
-- settled when it was made, so no search path has to be set.
create function foliot.note_count(counted_as text, number bigint) returns void language sql security definer
begin atomic
    insert into foliot.counted (name, value) select counted_as, number where number > 0;
end;

-- What the database ended by itself: steps that are skipped or stopped, and workflows and maps with their last step or item.
create function foliot.note_endings(ended foliot.ending[]) returns void language sql
begin atomic
    insert into foliot.counted (name, value) select state, count(*) from unnest(ended) as e group by state;
end;

-- What is wrong with the payload of a built-in task, as far as that can be told here; null: nothing. The worker looks at all of it.
create function foliot.payload_fault(task text, payload jsonb) returns text language plpgsql immutable parallel safe as $$
declare
    fields text[] := case task
        when 'shell' then array[
            'command', 'argv', 'cwd', 'environment', 'stdin', 'sandbox', 'memory_mb', 'cpu_seconds', 'file_size_mb', 'processes', 'network'
        ]
        when 'http' then array['url', 'method', 'headers', 'body', 'expected_status', 'timeout_seconds', 'redirects']
        when 'wait' then array[]::text[]
    end;
    strange text;
begin
    if fields is null then
        return null;
    end if;
    payload := coalesce(payload, '{}');
    select min(field) into strange from jsonb_object_keys(payload) as field where field <> all (fields);
    return case
        when strange is not null then 'payload.' || strange || ': there is no such field'
        when task = 'shell' and (payload ->> 'command' is null) = (payload ->> 'argv' is null)
            then 'payload: either `command` or `argv` is needed, and not both'
        when task = 'shell' and coalesce(jsonb_typeof(payload -> 'command'), 'null') not in ('string', 'null') then 'payload.command: must be text'
        when task = 'shell' and coalesce(jsonb_typeof(payload -> 'argv'), 'null') not in ('array', 'null') then 'payload.argv: must be a list'
        when task = 'shell' and coalesce(payload -> 'sandbox', 'null') not in ('"none"', '"process"', '"bubblewrap"', 'null')
            then 'payload.sandbox: must be none, process or bubblewrap'
        when task = 'http' and payload ->> 'url' !~* '^https?://[^\s/]' is not false then 'payload.url: must begin with http:// or https://'
    end;
end
$$;

-- Functions that several migrations have changed keep all else that they do, whichever of them was the last.
create function foliot.amend(function regprocedure, place text, becomes text) returns void language plpgsql as $$
declare
    known text := pg_get_functiondef(function);
begin
    if (length(known) - length(replace(known, place, ''))) <> length(place) then
        raise exception '% does not look as expected', function;
    end if;
    execute replace(known, place, becomes);
end
$$;

select foliot.amend('foliot.submit(jsonb)', place, becomes) from (values
    ('    declared_queue text;', '    declared_queue text;
    declared_tags jsonb;
    fault text;'),
    ('select queue into declared_queue from', 'select queue, tags into declared_queue, declared_tags from'),
    ('    asked.task := foliot.qualified(space, asked.task);', '    if asked.task in (''shell'', ''http'', ''wait'') then
        fault := foliot.payload_fault(asked.task, asked.payload);
        if fault is not null then
            raise exception ''%'', fault using errcode = ''invalid_parameter_value'';
        end if;
    end if;
    asked.task := foliot.qualified(space, asked.task);'),
    ('    if key_prefix <> '''' then
', '    if declared_tags is not null and job ->> ''tags'' is null then
        given_options := coalesce(given_options, ''{}'') || jsonb_build_object(''tags'', declared_tags);
    end if;
    if key_prefix <> '''' then
'),
    ('            return run_id;', '            perform foliot.note_count(''submitted'', 1);
            return run_id;')
) as amendments (place, becomes);

select foliot.amend('foliot.refill(uuid, timestamptz)', place, place || '
    perform foliot.note_count(''submitted'', number);')
from (values ('update foliot.parents set next_index = next_index + number, unfinished = unfinished + number where id = map.id;')) as p (place);

select foliot.amend('foliot.fire_dependents(uuid[], uuid[], timestamptz)', place, place || '
        perform foliot.note_count(''submitted'', 1);')
from (values ('update foliot.jobs set runs_left = runs_left - 1 where id = job.id and runs_left is not null;')) as p (place);

select foliot.amend('foliot.notify_endings()', place, becomes) from (values
    ('
begin
', '
declare
    number bigint;
begin
'),
    ('    on conflict (id) do nothing;
', '    on conflict (id) do nothing;
    get diagnostics number = row_count;
    perform foliot.note_count(''submitted'', number);
')
) as amendments (place, becomes);

select foliot.amend('foliot.settle_endings(foliot.ending[], timestamptz)', place, becomes) from (values
    ('            counted := counted || ended;
', '            counted := counted || ended;
            if ended is not null then
                perform foliot.note_endings(ended);
            end if;
'),
    ('        ended := foliot.settle_parents(counted, at);
', '        ended := foliot.settle_parents(counted, at);
        if ended is not null then
            perform foliot.note_endings(ended);
        end if;
')
) as amendments (place, becomes);

drop function foliot.amend(regprocedure, text, text);
