-- Tags to find runs and jobs by, messages about how runs ended, and endings in the order in which they came.

-- Tags are among the options, which go from a job to its runs and into history. What has none is not in these indexes, and pays nothing. A look
-- for a tag walks along them, page by page as every list does, through what has tags at all.
create index runs_tagged on foliot.runs (id) where options ? 'tags';
create index history_tagged on foliot.history (id) where options ? 'tags';
create index jobs_tagged on foliot.jobs (name) where options ? 'tags';

-- For those who follow what ends. History grows at its end, in the order of finishing: so few bytes a million rows are enough, and a row that is
-- added pays for none of them.
create index history_finished on foliot.history using brin (finished_at) with (pages_per_range = 32, autosummarize = on);

create or replace view foliot.all_runs as
select id, true as is_live, name, task, queue, state, null::text as reason, priority, attempt, worker_id, job_id, tick_at, rerun_of,
    null::uuid as rerun_as, null::jsonb as error, due_at, created_at, started_at, null::timestamptz as finished_at, parent_id, step,
    options -> 'tags' as tags, options ? 'tags' as is_tagged
from foliot.runs
union all
select id, false, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as, error, due_at, created_at,
    started_at, finished_at, parent_id, step, options -> 'tags', options ? 'tags'
from foliot.history;

-- The id of the run that tells of another's end: always the same, so that it can be found from there. model/notification.py makes the same.
create function foliot.notification_id(run_id uuid, place bigint, at timestamptz) returns uuid language plpgsql immutable parallel safe as $$
declare
    made bytea := substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3) || substring(decode(md5(run_id || '/' || place), 'hex') from 7);
begin
    made := set_byte(made, 6, get_byte(made, 6) & 15 | 112);
    made := set_byte(made, 8, get_byte(made, 8) & 63 | 128);
    return encode(made, 'hex')::uuid;
end
$$;

-- An instant as the API writes it, whatever time zone the session is in.
create function foliot.utc_text(at timestamptz) returns text language sql stable parallel safe
return to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- Whatever ends a run inserts it into history. Those who asked to be told get a run of the task `http` in the same transaction: it is there if and
-- only if the end is. Runs that nobody asked about cost a look at a column that is at hand. It must not fail, or nothing could end any more: what
-- makes no sense in a notice makes its message fail, and not this. The message itself asks for none.
create function foliot.notify_endings() returns trigger language plpgsql as $$
begin
    insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, name, payload, options)
    select foliot.notification_id(g.id, n.place, g.finished_at), g.finished_at, g.finished_at,
        (extract(epoch from g.finished_at) * 1000000)::bigint, 'ready', coalesce(foliot.qualified(foliot.namespace_of(g.queue), n.notice ->> 'queue'), g.queue),
        foliot.qualified(foliot.namespace_of(g.queue), 'http'), left('notify: ' || coalesce(g.shown_name, g.step, foliot.bare(g.task)), 200),
        jsonb_build_object(
            'url', n.notice -> 'url', 'method', 'POST', 'headers', coalesce(n.notice -> 'headers', '{}'),
            'body', jsonb_build_object(
                'id', g.id, 'name', g.shown_name, 'task', foliot.bare(g.task), 'queue', foliot.bare(g.queue), 'status', g.status, 'state', g.state, 'reason', g.reason,
                'error', case when g.error is not null then
                    jsonb_build_object('kind', g.error ->> 'kind', 'message', left(g.error ->> 'message', 2000))
                end,
                'attempt', g.attempt, 'created_at', foliot.utc_text(g.created_at), 'scheduled_at', foliot.utc_text(g.due_at),
                'started_at', foliot.utc_text(g.started_at), 'finished_at', foliot.utc_text(g.finished_at),
                'job_id', g.job_id, 'tick_at', foliot.utc_text(g.tick_at), 'parent_id', g.parent_id, 'step', g.step,
                'rerun_of', g.rerun_of, 'tags', coalesce(g.options -> 'tags', '[]'),
                'links', jsonb_build_object('run', '/v1/runs/' || g.id, 'logs', '/v1/runs/' || g.id || '/logs')
            )
        ),
        jsonb_build_object('retries', 10, 'notifies', g.id)
    from (
        select *, case when job_id is null then name else foliot.bare(name) end as shown_name, case state when 'succeeded' then 'completed' else state end as status,
            case jsonb_typeof(options -> 'notify') when 'array' then options -> 'notify' else '[]' end as notices
        from gone where options ? 'notify'
    ) as g
    cross join lateral jsonb_array_elements(g.notices) with ordinality as n (notice, place)
    where n.notice -> 'on' ? g.status or n.notice -> 'on' ? g.reason
    on conflict (id) do nothing;
    return null;
end
$$;
create trigger notify after insert on foliot.history referencing new table as gone for each statement execute function foliot.notify_endings();

-- As before, and with metadata, tags, notify and a namespace.
create or replace function foliot.submit(job jsonb) returns uuid language plpgsql as $$
declare
    option_names constant text[] := array[
        'retries', 'timeout_seconds', 'backoff', 'retry_on', 'never_on', 'max_snoozes', 'concurrency', 'rate', 'fairness_key', 'guarantee',
        'metadata', 'tags', 'notify'
    ];
    known constant text[] := option_names || array[
        'task', 'payload', 'name', 'queue', 'priority', 'delay_seconds', 'schedule_time', 'expires_at', 'unique', 'aging_seconds', 'namespace'
    ];
    at constant timestamptz := clock_timestamp();
    run_id uuid := encode(set_bit(set_bit(overlay(
        uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6
    ), 52, 1), 53, 1), 'hex')::uuid;
    asked record;
    declared_queue text;
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
        raise exception '%: there is no such field here', (select min(field) from jsonb_object_keys(job) as field where field <> all (known))
            using errcode = 'invalid_parameter_value';
    end if;
    select * into asked from jsonb_to_record(job) as j (
        task text, payload jsonb, name text, queue text, priority bigint, delay_seconds float8, schedule_time timestamptz,
        expires_at timestamptz, aging_seconds float8
    );
    if space !~ '^[a-z0-9][a-z0-9_-]{0,62}$' then
        raise exception 'namespace: lower-case letters, digits, - and _ are allowed, up to 63' using errcode = 'invalid_parameter_value';
    end if;
    key_prefix := case when space = 'default' then '' else space || chr(31) end;
    select queue into declared_queue from foliot.tasks where tasks.name = foliot.qualified(space, asked.task);
    if declared_queue is null then
        raise exception 'task: no worker knows a task named %', coalesce(quote_literal(asked.task), 'null')
            using errcode = 'invalid_parameter_value';
    end if;
    if asked.payload is not null and jsonb_typeof(asked.payload) <> 'object' then
        raise exception 'payload: must be a JSON object' using errcode = 'invalid_parameter_value';
    end if;
    if asked.queue !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$' then
        raise exception 'queue: letters, digits, and . _ : - are allowed, up to 200' using errcode = 'invalid_parameter_value';
    end if;
    if asked.priority not between -1000 and 1000 then
        raise exception 'priority: must be between -1000 and 1000' using errcode = 'invalid_parameter_value';
    end if;
    if asked.delay_seconds not between 0 and 315360000 or (asked.delay_seconds is not null and asked.schedule_time is not null) then
        raise exception 'delay_seconds: must be between 0 and 315360000, and stands alone' using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'schedule_time' !~ '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$' or job ->> 'expires_at' !~ '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$' then
        raise exception 'schedule_time, expires_at: ISO 8601 with an offset' using errcode = 'invalid_parameter_value';
    end if;
    if job ->> 'unique' is not null and length(unique_key_given) between 1 and 255 is not true then
        raise exception 'unique: key must have 1 to 255 characters' using errcode = 'invalid_parameter_value';
    end if;
    if on_conflict not in ('return_existing', 'reject', 'replace') then
        raise exception 'unique: on_conflict must be return_existing, reject or replace' using errcode = 'invalid_parameter_value';
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
    if job ->> 'notify' is not null then
        notices := case jsonb_typeof(job -> 'notify') when 'array' then job -> 'notify' else jsonb_build_array(job -> 'notify') end;
        if jsonb_array_length(notices) > 5 or exists (
            select from jsonb_array_elements(notices) as n (notice)
            where jsonb_typeof(notice) <> 'object' or notice ->> 'url' !~ '^https?://[^\s/]' is not false
                or coalesce(jsonb_typeof(notice -> 'on'), 'array') <> 'array' or coalesce(jsonb_typeof(notice -> 'headers'), 'object') <> 'object'
                or notice ->> 'queue' !~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}$'
        ) then
            raise exception 'notify: up to 5 objects with a url that begins with http:// or https://, and perhaps on, headers and queue'
                using errcode = 'invalid_parameter_value';
        end if;
        job := jsonb_set(job, '{notify}', (
            select jsonb_agg('{"on": ["failed"]}' || jsonb_strip_nulls(notice)) from jsonb_array_elements(notices) as n (notice)
        ));
    end if;
    asked.task := foliot.qualified(space, asked.task);
    asked.queue := foliot.qualified(space, asked.queue);
    unique_key_given := key_prefix || unique_key_given;
    due := greatest(at, coalesce(asked.schedule_time, at + asked.delay_seconds * interval '1 second', at));
    given_options := (select jsonb_object_agg(key, value) from jsonb_each(job) where key = any (option_names) and value <> 'null' and value <> '[]');
    if key_prefix <> '' then
        if given_options ? 'concurrency' then
            given_options := jsonb_set(given_options, '{concurrency,key}', to_jsonb(key_prefix || (given_options #>> '{concurrency,key}')));
        end if;
        if given_options ? 'rate' then
            given_options := jsonb_set(given_options, '{rate,key}', to_jsonb(key_prefix || (given_options #>> '{rate,key}')));
        end if;
        if given_options ? 'fairness_key' then
            given_options := jsonb_set(given_options, '{fairness_key}', to_jsonb(key_prefix || (given_options ->> 'fairness_key')));
        end if;
    end if;
    loop
        insert into foliot.runs (
            id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, unique_key, expires_at
        )
        values (
            run_id, at, due,
            (extract(epoch from due) * 1000000)::bigint
                - (coalesce(asked.priority, 0) * coalesce(asked.aging_seconds, 300) * 1000000)::bigint,
            coalesce(asked.priority, 0),
            case when due > at then 'scheduled' when given_options ?| '{concurrency,rate}' then 'held' else 'ready' end,
            case when due <= at and given_options ?| '{concurrency,rate}' then 'limit' end, coalesce(asked.queue, declared_queue),
            asked.task, asked.name, nullif(asked.payload, '{}'), given_options, unique_key_given, asked.expires_at
        )
        on conflict (unique_key) where unique_key is not null do nothing;
        if found then
            return run_id;
        end if;
        if on_conflict = 'replace' then
            update foliot.runs r
            set task = asked.task, queue = coalesce(asked.queue, declared_queue), name = asked.name, priority = coalesce(asked.priority, 0),
                payload = nullif(asked.payload, '{}'), options = given_options, expires_at = asked.expires_at, due_at = due,
                rank = (extract(epoch from due) * 1000000)::bigint
                    - (coalesce(asked.priority, 0) * coalesce(asked.aging_seconds, 300) * 1000000)::bigint,
                state = case
                    when r.state = 'waiting' then r.state when due > at then 'scheduled'
                    when given_options ?| '{concurrency,rate}' then 'held' else 'ready'
                end,
                held_by = case when r.state <> 'waiting' and due <= at and given_options ?| '{concurrency,rate}' then 'limit' end
            where r.unique_key = unique_key_given and r.state <> 'running' and r.started_at is null and r.cancel is null
            returning r.id into found_id;
            if found then
                return found_id;
            end if;
        end if;
        select id, state into found_id, found_state from foliot.runs where runs.unique_key = unique_key_given;
        if found and on_conflict = 'reject' then
            raise exception 'unique: the run % has the key % and is %', found_id, quote_literal(unique_key_given), found_state
                using errcode = 'unique_violation';
        end if;
        if found then
            return found_id;
        end if;
        -- It ended between two looks.
    end loop;
end
$$;
