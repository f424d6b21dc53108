-- Submits a one-off job from inside any transaction, in any language, and returns the id of its run.
--
-- The job exists if and when that transaction commits. The fields are those of `POST /v1/jobs`, except for schedules.
-- No worker is woken, because a NOTIFY would make commits wait for each other: workers find the run at their next poll,
-- by default within a second. `aging_seconds` is for installations that changed that setting. The function runs with
-- the rights of its caller, who must be able to read foliot.tasks, and to read, insert into and update foliot.runs.
create or replace function foliot.submit(job jsonb) returns uuid language plpgsql as $$
declare
    option_names constant text[] := array[
        'retries', 'timeout_seconds', 'backoff', 'retry_on', 'never_on', 'max_snoozes', 'concurrency', 'rate',
        'fairness_key', 'guarantee', 'metadata', 'tags', 'notify', 'templates', 'traceparent'
    ];
    known constant text[] := option_names || array[
        'task', 'payload', 'name', 'queue', 'priority', 'delay_seconds', 'schedule_time', 'expires_at', 'unique',
        'aging_seconds', 'namespace'
    ];
    at constant timestamptz := clock_timestamp();
    run_id uuid := foliot.new_id(at);
    asked record;
    declared_queue text;
    declared_tags jsonb;
    fault text;
    due timestamptz;
    given_options jsonb;
    notices jsonb;
    space text := coalesce(job ->> 'namespace', 'default');
    key_prefix text;
    unique_key_given text := job -> 'unique' ->> 'key';
    on_conflict text := coalesce(job -> 'unique' ->> 'on_conflict', 'return_existing');
    found_id uuid;
    found_state text;
begin
    if jsonb_typeof(job) is distinct from 'object' then
        raise exception 'a job is a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    if exists (select from jsonb_object_keys(job) as field where field <> all (known)) then
        raise exception '%: there is no such field here',
            (select min(field) from jsonb_object_keys(job) as field where field <> all (known))
            using errcode = 'invalid_parameter_value';
    end if;
    select * into asked from jsonb_to_record(job) as j (
        task text, payload jsonb, name text, queue text, priority bigint, delay_seconds float8,
        schedule_time timestamptz, expires_at timestamptz, aging_seconds float8
    );
    if space !~ '^[a-z0-9][a-z0-9_-]{0,62}$' then
        raise exception 'namespace: lower-case letters, digits, - and _ are allowed, up to 63'
            using errcode = 'invalid_parameter_value';
    end if;
    key_prefix := case when space = 'default' then '' else space || chr(31) end;
    select queue, tags into declared_queue, declared_tags from foliot.tasks
    where tasks.name = foliot.qualified(space, asked.task);
    if declared_queue is null then
        raise exception 'task: no worker knows a task named %', coalesce(quote_literal(asked.task), 'null')
            using errcode = 'invalid_parameter_value';
    end if;
    if asked.payload is not null and jsonb_typeof(asked.payload) <> 'object' then
        raise exception 'payload: must be a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    if asked.queue !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$' then
        raise exception 'queue: letters, digits, and . _ : - are allowed, up to 200'
            using errcode = 'invalid_parameter_value';
    end if;
    if asked.priority not between -1000 and 1000 then
        raise exception 'priority: must be between -1000 and 1000' using errcode = 'invalid_parameter_value';
    end if;
    if asked.delay_seconds not between 0 and 315360000
        or (asked.delay_seconds is not null and asked.schedule_time is not null) then
        raise exception 'delay_seconds: must be between 0 and 315360000, and stands alone'
            using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'schedule_time' !~ '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$'
        or job ->> 'expires_at' !~ '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$' then
        raise exception 'schedule_time, expires_at: ISO 8601 with an offset' using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'unique' is not null and length(unique_key_given) between 1 and 255 is not true then
        raise exception 'unique: key must have 1 to 255 characters' using errcode = 'invalid_parameter_value';
    end if;
    if on_conflict not in ('return_existing', 'reject', 'replace') then
        raise exception 'unique: on_conflict must be return_existing, reject or replace'
            using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'metadata' is not null and jsonb_typeof(job -> 'metadata') <> 'object' then
        raise exception 'metadata: must be a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'tags' is not null and (jsonb_typeof(job -> 'tags') <> 'array' or exists (
        select from jsonb_array_elements(case jsonb_typeof(job -> 'tags') when 'array' then job -> 'tags' else '[]' end)
            with ordinality as t (tag, place)
        where jsonb_typeof(tag) <> 'string' or tag #>> '{}' !~ '^[^\s,]{1,64}$' or place > 20
    )) then
        raise exception 'tags: a list of up to 20 words of up to 64 characters, without blanks and commas'
            using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'traceparent' is not null
        and job ->> 'traceparent' !~ '^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$' then
        raise exception 'traceparent: must look like 00-<32 hex digits>-<16 hex digits>-01, as W3C says'
            using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'notify' is not null then
        notices := case jsonb_typeof(job -> 'notify') when 'array' then job -> 'notify'
        else jsonb_build_array(job -> 'notify') end;
        if jsonb_array_length(notices) > 5 or exists (
            select from jsonb_array_elements(notices) as n (notice)
            where jsonb_typeof(notice) <> 'object' or notice ->> 'url' !~ '^https?://[^\s/]' is not false
                or coalesce(jsonb_typeof(notice -> 'on'), 'array') <> 'array'
                or coalesce(jsonb_typeof(notice -> 'headers'), 'object') <> 'object'
                or notice ->> 'queue' !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$'
        ) then
            raise exception 'notify: up to 5 objects with a url (http:// or https://), optionally on, headers, queue'
                using errcode = 'invalid_parameter_value';
        end if;
        job := jsonb_set(job, '{notify}', (
            select jsonb_agg('{"on": ["failed"]}' || jsonb_strip_nulls(notice))
            from jsonb_array_elements(notices) as n (notice)
        ));
    end if;
    if asked.task in ('shell', 'http', 'wait', 'wait_for_file', 'wait_for_row', 'wait_for_url') then
        fault := foliot.payload_fault(asked.task, asked.payload);
        if fault is not null then
            raise exception '%', fault using errcode = 'invalid_parameter_value';
        end if;
    end if;
    if coalesce(jsonb_typeof(job -> 'templates'), 'null') not in ('boolean', 'null') then
        raise exception 'templates: must be true or false' using errcode = 'invalid_parameter_value';
    end if;
    if coalesce((job ->> 'templates')::boolean, asked.task in ('shell', 'http', 'wait_for_file', 'wait_for_row', 'wait_for_url')) then
        fault := foliot.template_fault(asked.payload);
        if fault is not null then
            raise exception '%', fault using errcode = 'invalid_parameter_value';
        end if;
    end if;
    asked.task := foliot.qualified(space, asked.task);
    if foliot.is_disabled(asked.task) then
        raise exception 'task: % is disabled in the namespace %', quote_literal(foliot.bare(asked.task)),
            quote_literal(space)
            using errcode = 'insufficient_privilege';
    end if;
    asked.queue := foliot.qualified(space, asked.queue);
    unique_key_given := key_prefix || unique_key_given;
    due := greatest(at, coalesce(asked.schedule_time, at + asked.delay_seconds * interval '1 second', at));
    given_options := (select jsonb_object_agg(key, value) from jsonb_each(job)
        where key = any (option_names) and value <> 'null' and value <> '[]');
    if declared_tags is not null and job ->> 'tags' is null then
        given_options := coalesce(given_options, '{}') || jsonb_build_object('tags', declared_tags);
    end if;
    if key_prefix <> '' then
        if given_options ? 'concurrency' then
            given_options := jsonb_set(given_options, '{concurrency,key}',
                to_jsonb(key_prefix || (given_options #>> '{concurrency,key}')));
        end if;
        if given_options ? 'rate' then
            given_options := jsonb_set(given_options, '{rate,key}',
                to_jsonb(key_prefix || (given_options #>> '{rate,key}')));
        end if;
        if given_options ? 'fairness_key' then
            given_options := jsonb_set(given_options, '{fairness_key}',
                to_jsonb(key_prefix || (given_options ->> 'fairness_key')));
        end if;
    end if;
    loop
        insert into foliot.runs (
            id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, unique_key,
            expires_at
        )
        values (
            run_id, at, due,
            (extract(epoch from due) * 1000000)::bigint
                - (coalesce(asked.priority, 0) * coalesce(asked.aging_seconds, 300) * 1000000)::bigint,
            coalesce(asked.priority, 0),
            case when due > at then 'scheduled' when foliot.has_limits(given_options) then 'held' else 'ready' end,
            case when due <= at and foliot.has_limits(given_options) then 'limit'
                end, coalesce(asked.queue, declared_queue),
            asked.task, asked.name, nullif(asked.payload, '{}'), given_options, unique_key_given, asked.expires_at
        )
        on conflict (unique_key) where unique_key is not null do nothing;
        if found then
            perform foliot.note_count('submitted', 1);
            return run_id;
        end if;
        if on_conflict = 'replace' then
            update foliot.runs r
            set task = asked.task, queue = coalesce(asked.queue, declared_queue), name = asked.name,
                priority = coalesce(asked.priority, 0),
                payload = nullif(asked.payload, '{}'), options = given_options, expires_at = asked.expires_at,
                due_at = due,
                rank = (extract(epoch from due) * 1000000)::bigint
                    - (coalesce(asked.priority, 0) * coalesce(asked.aging_seconds, 300) * 1000000)::bigint,
                state = case
                    when r.state = 'waiting' then r.state when due > at then 'scheduled'
                    when foliot.has_limits(given_options) then 'held' else 'ready'
                end,
                held_by = case when r.state <> 'waiting' and due <= at
                and foliot.has_limits(given_options) then 'limit' end
            where r.unique_key = unique_key_given and r.state <> 'running' and r.started_at is null and r.cancel is null
            returning r.id into found_id;
            if found then
                return found_id;
            end if;
        end if;
        select id, state into found_id, found_state from foliot.runs where runs.unique_key = unique_key_given;
        if found and on_conflict = 'reject' then
            raise exception 'unique: the run % has the key % and is %', found_id, quote_literal(unique_key_given),
                found_state
                using errcode = 'unique_violation';
        end if;
        if found then
            return found_id;
        end if;
        -- The run with that key ended between the insert and the look.
    end loop;
end
$$;
