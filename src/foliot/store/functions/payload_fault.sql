-- Says what is wrong with the payload of a built-in task, or null. The worker checks the rest.
create or replace function foliot.payload_fault(task text, payload jsonb) returns text
language plpgsql immutable parallel safe as $$
declare
    polling text[] := array['every_seconds', 'at_most_seconds', 'within_seconds'];
    fields text[] := case task
        when 'shell' then array[
            'command', 'argv', 'cwd', 'environment', 'stdin', 'sandbox', 'memory_mb', 'cpu_seconds', 'file_size_mb',
            'processes', 'network'
        ]
        when 'http' then array['url', 'method', 'headers', 'body', 'expected_status', 'timeout_seconds', 'redirects']
        when 'wait' then array[]::text[]
        when 'wait_for_file' then polling || array['path', 'min_bytes']
        when 'wait_for_url' then polling || array[
            'url', 'method', 'headers', 'expected_status', 'timeout_seconds', 'redirects'
        ]
        when 'wait_for_row' then polling || array['query', 'parameters']
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
        when task = 'shell' and coalesce(jsonb_typeof(payload -> 'command'), 'null') not in ('string', 'null')
            then 'payload.command: must be text'
        when task = 'shell' and coalesce(jsonb_typeof(payload -> 'argv'), 'null') not in ('array', 'null')
            then 'payload.argv: must be a list'
        when task = 'shell'
                and coalesce(payload -> 'sandbox', 'null') not in ('"none"', '"process"', '"bubblewrap"', 'null')
            then 'payload.sandbox: must be none, process or bubblewrap'
        when task = 'wait_for_file' and payload ->> 'path' !~ '^/' is not false
            then 'payload.path: must be an absolute path'
        when task = 'wait_for_row' and coalesce(payload ->> 'query', '') = ''
            then 'payload.query: must be a SELECT'
        when task in ('http', 'wait_for_url') and payload ->> 'url' !~* '^https?://[^\s/]' is not false
            then 'payload.url: must begin with http:// or https://'
    end;
end
$$;
