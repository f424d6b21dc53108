-- Made by `make schema` from the migrations. Do not edit.

CREATE SCHEMA foliot;

CREATE TYPE foliot.ending AS (
	id uuid,
	state text,
	parent_id uuid,
	blame text,
	has_dependents boolean
);

CREATE FUNCTION foliot.bare(qualified text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(qualified, '^.*/'::text, ''::text);

CREATE FUNCTION foliot.due_bucket(at timestamp with time zone) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (floor((EXTRACT(epoch FROM at) / (4)::numeric)))::bigint;

CREATE FUNCTION foliot.fire_dependents(upstreams uuid[], run_ids uuid[], at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    job record;
    open_run uuid;
    upstream_tick jsonb;
begin
    -- In a statement of its own, so that the statements below see what the previous holder of the lock has written.
    perform 1 from foliot.jobs
    where id in (select job_id from foliot.job_dependencies where upstream_id = any (upstreams) and fires)
    order by id for no key update;
    update foliot.job_dependencies d set succeeded_at = at, run_id = g.run_id
    from unnest(upstreams, run_ids) as g (upstream_id, run_id)
    where d.upstream_id = g.upstream_id and d.fires;
    for job in
        select j.*, d.aging, d.run_ids from foliot.jobs j join (
            select job_id, max(aging) as aging, array_agg(run_id) as run_ids from foliot.job_dependencies
            where job_id in (select job_id from foliot.job_dependencies where upstream_id = any (upstreams) and fires)
            group by job_id having bool_and(succeeded_at is not null)
        ) as d on d.job_id = j.id
        where j.paused_at is null and coalesce(j.runs_left, 1) > 0
        order by j.id
    loop
        update foliot.job_dependencies set succeeded_at = null where job_id = job.id;
        select r.id into open_run from foliot.runs r
        where r.job_id = job.id and job.schedule ->> 'overlap' is distinct from 'allow_all' limit 1;
        if open_run is not null then
            insert into foliot.ticks (job_id, tick_at, noted_at, reason, blocked_by)
            values (job.id, at, at, 'overlap', open_run);
            continue;
        end if;
        -- The tick of the upstream run, so that a backfill of the upstream reaches this job too. Of several, the latest.
        select options -> 'tick' into upstream_tick from foliot.history
        where id = any (job.run_ids) and finished_at >= at - interval '1 day' and options ? 'tick'
        order by options #> '{tick,at}' desc limit 1;
        insert into foliot.runs (
            id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, job_id,
            tick_at, upstream
        )
        values (
            foliot.new_id(at), at, at, (extract(epoch from at) * 1000000)::bigint - job.priority * job.aging,
            job.priority,
            case when foliot.has_limits(job.options) then 'held' else 'ready' end,
            case when foliot.has_limits(job.options) then 'limit' end,
            job.queue, job.task, job.name, job.payload,
            foliot.with_tick(
                job.options, coalesce((upstream_tick ->> 'at')::float8, extract(epoch from at)::float8),
                (upstream_tick ->> 'previous')::float8, (upstream_tick ->> 'next')::float8, upstream_tick ->> 'origin',
                case when upstream_tick is null then job.schedule
                    else jsonb_build_object('timezone', upstream_tick -> 'zone') end, job.name, job.id
            ), job.id, at, job.run_ids
        );
        update foliot.jobs set runs_left = runs_left - 1 where id = job.id and runs_left is not null;
        perform foliot.note_count('submitted', 1);
    end loop;
end
$$;

CREATE FUNCTION foliot.has_limits(options jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (options ?| '{concurrency,rate}'::text[]);

CREATE FUNCTION foliot.namespace_of(qualified text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (strpos(qualified, '/'::text) = 0) THEN 'default'::text ELSE split_part(qualified, '/'::text, 1) END;

CREATE TABLE foliot.disabled_tasks (
    namespace text NOT NULL,
    task text NOT NULL,
    disabled_at timestamp with time zone NOT NULL,
    disabled_by text NOT NULL,
    reason text,
    is_imposed boolean NOT NULL
);

CREATE FUNCTION foliot.is_disabled(qualified text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN ((EXISTS (SELECT FROM foliot.disabled_tasks)) AND (EXISTS (SELECT FROM foliot.disabled_tasks d WHERE ((d.task = foliot.bare(is_disabled.qualified)) AND (d.namespace = ANY (ARRAY['*'::text, foliot.namespace_of(is_disabled.qualified)]))))));

CREATE FUNCTION foliot.link_runs(most bigint, at timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
declare
    link record;
    live record;
    past record;
    number bigint := 0;
begin
    for link in
        select l.* from foliot.links l left join foliot.jobs j on j.id = l.upstream_id
        -- An upstream that is paused, ended or deleted fires nothing more.
        where j.id is null or j.fire_at is null or j.next_at > l.tick_at
        order by l.run_id limit most for update of l skip locked
    loop
        select id, tick_at into live from foliot.runs
        where job_id = link.upstream_id and tick_at <= link.tick_at order by tick_at desc limit 1;
        select id, tick_at, state, coalesce(name, id::text) as name into past from foliot.history
        where job_id = link.upstream_id and tick_at <= link.tick_at order by tick_at desc limit 1;
        if live.id is not null and (past.id is null or live.tick_at >= past.tick_at) then
            -- The run may be ending just now. Then the next call finds it in history.
            update foliot.runs set has_dependents = true where id = live.id;
            continue when not found;
            insert into foliot.dependencies (upstream_id, run_id) values (live.id, link.run_id);
            update foliot.runs set upstream = upstream || live.id where id = link.run_id and state = 'waiting';
        else
            -- A run that has ended counts at once. If there never was one, there is nothing to wait for.
            insert into foliot.dependencies (upstream_id, run_id)
            values (coalesce(past.id, link.upstream_id), link.run_id);
            update foliot.runs set upstream = upstream || past.id
            where id = link.run_id and state = 'waiting' and past.id is not null;
            perform foliot.settle_endings(array[row(
                coalesce(past.id, link.upstream_id), coalesce(past.state, 'succeeded'), null,
                case when past.state <> 'succeeded' then past.name end, true
            )::foliot.ending], at);
        end if;
        delete from foliot.links where run_id = link.run_id and upstream_id = link.upstream_id;
        number := number + 1;
    end loop;
    return number;
end
$$;

CREATE FUNCTION foliot.new_id(at timestamp with time zone) RETURNS uuid
    LANGUAGE sql PARALLEL SAFE
    RETURN (encode(set_bit(set_bit(OVERLAY(uuid_send(gen_random_uuid()) PLACING SUBSTRING(int8send((floor((EXTRACT(epoch FROM at) * (1000)::numeric)))::bigint) FROM 3) FROM 1 FOR 6), (52)::bigint, 1), (53)::bigint, 1), 'hex'::text))::uuid;

CREATE UNLOGGED TABLE foliot.counted (
    name text NOT NULL,
    value double precision NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000');

CREATE FUNCTION foliot.note_count(counted_as text, number bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    BEGIN ATOMIC
 INSERT INTO foliot.counted (name, value)  SELECT note_count.counted_as AS counted_as,
             note_count.number AS number
           WHERE (note_count.number > 0);
END;

CREATE FUNCTION foliot.note_endings(ended foliot.ending[]) RETURNS void
    LANGUAGE sql
    BEGIN ATOMIC
 INSERT INTO foliot.counted (name, value)  SELECT e.state,
             count(*) AS count
            FROM unnest(note_endings.ended) e(id, state, parent_id, blame, has_dependents)
           GROUP BY e.state;
END;

CREATE FUNCTION foliot.notification_id(run_id uuid, place bigint, at timestamp with time zone) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
declare
    made bytea := substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3)
        || substring(decode(md5(run_id || '/' || place), 'hex') from 7);
begin
    made := set_byte(made, 6, get_byte(made, 6) & 15 | 112);
    made := set_byte(made, 8, get_byte(made, 8) & 63 | 128);
    return encode(made, 'hex')::uuid;
end
$$;

CREATE FUNCTION foliot.notify_endings() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    number bigint;
begin
    insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, name, payload, options)
    select foliot.notification_id(g.id, n.place, g.finished_at), g.finished_at, g.finished_at,
        (extract(epoch from g.finished_at) * 1000000)::bigint, 'ready',
        coalesce(foliot.qualified(foliot.namespace_of(g.queue), n.notice ->> 'queue'), g.queue),
        foliot.qualified(foliot.namespace_of(g.queue), 'http'),
        left('notify: ' || coalesce(g.shown_name, g.step, foliot.bare(g.task)), 200),
        jsonb_build_object(
            'url', n.notice -> 'url', 'method', 'POST', 'headers', coalesce(n.notice -> 'headers', '{}'),
            'body', jsonb_build_object(
                'id', g.id, 'name', g.shown_name, 'task', foliot.bare(g.task), 'queue', foliot.bare(g.queue), 'status',
                g.status, 'state', g.state, 'reason', g.reason,
                'error', case when g.error is not null then
                    jsonb_build_object('kind', g.error ->> 'kind', 'message', left(g.error ->> 'message', 2000))
                end,
                'attempt', g.attempt, 'created_at', foliot.utc_text(g.created_at), 'scheduled_at',
                foliot.utc_text(g.due_at),
                'started_at', foliot.utc_text(g.started_at), 'finished_at', foliot.utc_text(g.finished_at),
                'job_id', g.job_id, 'tick_at', foliot.utc_text(g.tick_at), 'parent_id', g.parent_id, 'step', g.step,
                'rerun_of', g.rerun_of, 'tags', coalesce(g.options -> 'tags', '[]'),
                'links', jsonb_build_object('run', '/v1/runs/' || g.id, 'logs', '/v1/runs/' || g.id || '/logs')
            )
        ),
        jsonb_strip_nulls(jsonb_build_object(
            'retries', 10, 'notifies', g.id,
            -- The delivery belongs to the trace of the run, below its span: see model/tracing.py.
            'traceparent', left(g.options ->> 'traceparent', 36) || right(replace(g.id::text, '-', ''), 16)
                || right(g.options ->> 'traceparent', 3)
        ))
    from (
        select *, case when job_id is null then name else foliot.bare(name) end as shown_name,
            case state when 'succeeded' then 'completed' else state end as status,
            case jsonb_typeof(options -> 'notify') when 'array' then options -> 'notify' else '[]' end as notices
        from gone where options ? 'notify'
    ) as g
    cross join lateral jsonb_array_elements(g.notices) with ordinality as n (notice, place)
    where n.notice -> 'on' ? g.status or n.notice -> 'on' ? g.reason
    on conflict (id) do nothing;
    get diagnostics number = row_count;
    perform foliot.note_count('submitted', number);
    return null;
end
$$;

CREATE FUNCTION foliot.overlap_verdict(policy text, is_blocked boolean, waiting bigint, buffer_max bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN ((NOT is_blocked) OR (policy = ANY (ARRAY['allow_all'::text, 'terminate_other'::text]))) THEN 'ready'::text WHEN ((policy = 'cancel_other'::text) OR ((policy = 'buffer_one'::text) AND (waiting = 0))) THEN 'held'::text WHEN ((policy = 'buffer_all'::text) AND (waiting < buffer_max)) THEN 'held'::text ELSE NULL::text END;

CREATE TABLE foliot.history (
    id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    finished_at timestamp with time zone NOT NULL,
    token bigint NOT NULL,
    attempt bigint NOT NULL,
    lost bigint NOT NULL,
    priority bigint NOT NULL,
    worker_id uuid,
    state text NOT NULL,
    queue text NOT NULL,
    task text NOT NULL,
    name text,
    reason text,
    payload jsonb,
    options jsonb,
    result json,
    error jsonb,
    output bytea,
    job_id uuid,
    tick_at timestamp with time zone,
    rerun_of uuid,
    rerun_as uuid,
    fingerprint text,
    parent_id uuid,
    step text,
    upstream uuid[],
    has_dependents boolean,
    CONSTRAINT history_state_is_terminal CHECK ((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'skipped'::text])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE foliot.parents (
    id uuid NOT NULL,
    root_id uuid NOT NULL,
    run_id uuid NOT NULL,
    kind text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    on_failure text NOT NULL,
    stop jsonb,
    blame text,
    total bigint NOT NULL,
    next_index bigint NOT NULL,
    capacity bigint NOT NULL,
    unfinished bigint DEFAULT 0 NOT NULL,
    succeeded bigint DEFAULT 0 NOT NULL,
    failed bigint DEFAULT 0 NOT NULL,
    cancelled bigint DEFAULT 0 NOT NULL,
    skipped bigint DEFAULT 0 NOT NULL,
    template jsonb,
    items jsonb,
    CONSTRAINT parents_count_right CHECK (((unfinished >= 0) AND (next_index <= total))),
    CONSTRAINT parents_kind_is_known CHECK ((kind = ANY (ARRAY['workflow'::text, 'map'::text]))),
    CONSTRAINT parents_on_failure_is_known CHECK ((on_failure = ANY (ARRAY['fail_fast'::text, 'continue'::text])))
)
WITH (fillfactor='50');

CREATE FUNCTION foliot.parent_result(p foliot.parents) RETURNS json
    LANGUAGE sql STABLE
    RETURN (SELECT CASE WHEN (r.results IS NULL) THEN json_build_object('succeeded', (parent_result.p).succeeded, 'failed', (parent_result.p).failed, 'cancelled', (parent_result.p).cancelled, 'skipped', (parent_result.p).skipped) ELSE json_build_object('succeeded', (parent_result.p).succeeded, 'failed', (parent_result.p).failed, 'cancelled', (parent_result.p).cancelled, 'skipped', (parent_result.p).skipped, 'results', r.results) END AS json_build_object FROM (SELECT CASE WHEN (COALESCE(sum(octet_length((h.result)::text)), (0)::bigint) <= 1000000) THEN json_agg(COALESCE(h.result, 'null'::json) ORDER BY (h.step)::bigint) ELSE NULL::json END AS results FROM foliot.history h WHERE (((parent_result.p).kind = 'map'::text) AND ((parent_result.p).total <= 1000) AND (((parent_result.p).failed + (parent_result.p).cancelled) = 0) AND (h.parent_id = (parent_result.p).id) AND (h.state = 'succeeded'::text) AND (h.finished_at >= ((parent_result.p).created_at - '1 day'::interval)))) r);

CREATE FUNCTION foliot.payload_fault(task text, payload jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
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

CREATE FUNCTION foliot.qualified(namespace text, name text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (namespace = 'default'::text) THEN name ELSE ((namespace || '/'::text) || name) END;

CREATE FUNCTION foliot.refill(map_id uuid, at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
declare
    map record;
    number bigint;
    chunk bigint;
    -- The list has not been unpacked into map_items.
    is_packed boolean;
begin
    -- Without the list: reading it costs as much as it is long.
    select id, capacity, unfinished, total, next_index, stop, template, items is not null as has_list into map
    from foliot.parents where id = map_id for update;
    number := least(map.capacity - map.unfinished, map.total - map.next_index);
    if number <= 0 or map.stop is not null then
        return;
    end if;
    chunk := (map.template ->> 'chunk_size')::bigint;
    is_packed := map.has_list and not exists (
        select from foliot.map_items i where i.map_id = map.id and i.place = map.next_index
    );
    with numbered as (
        select n - 1 as index, value
        from jsonb_array_elements(
            case when is_packed then (select items from foliot.parents where id = map.id) end
        ) with ordinality as e (value, n)
        where n > map.next_index * chunk
        union all
        select i, to_jsonb((map.template ->> 'start')::bigint + i * (map.template ->> 'step')::bigint)
        from generate_series(
            map.next_index * chunk, least((map.next_index + number) * chunk, (map.template ->> 'count')::bigint) - 1
        ) as i
        where not map.has_list
    ), chunked as materialized (
        select index / chunk as place,
            case when chunk = 1 then (array_agg(value))[1] else jsonb_agg(value order by index) end as value
        from numbered group by index / chunk
    ), kept as (
        insert into foliot.map_items (map_id, place, value)
        select map.id, c.place, c.value from chunked c where c.place >= map.next_index + number
    ), taken as (
        delete from foliot.map_items i
        where i.map_id = map.id and i.place >= map.next_index and i.place < map.next_index + number and not is_packed
        returning i.place, i.value
    ), next as (
        select c.place, c.value from chunked c where c.place < map.next_index + number
        union all
        select t.place, t.value from taken t
    ), template as (
        select * from jsonb_to_record(map.template) as t (
            task text, queue text, name text, priority bigint, payload jsonb, options jsonb, item_name text,
            rank_offset bigint
        )
    )
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, parent_id, step
    )
    select foliot.new_id(at), at, at,
        (extract(epoch from at) * 1000000)::bigint - t.rank_offset + n.place - map.next_index, t.priority,
        case when foliot.has_limits(t.options) then 'held' else 'ready' end,
        case when foliot.has_limits(t.options) then 'limit' end,
        t.queue, t.task, t.name, coalesce(t.payload, '{}') || jsonb_build_object(t.item_name, n.value), t.options,
        map.id, n.place::text
    from next n, template t;
    update foliot.parents set next_index = next_index + number, unfinished = unfinished + number where id = map.id;
    perform foliot.note_count('submitted', number);
end
$$;

CREATE FUNCTION foliot.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception 'foliot.audit is append-only' using errcode = 'insufficient_privilege';
end $$;

CREATE FUNCTION foliot.rule_verdict(rule text, unmet bigint, succeeded bigint, failed bigint, skipped bigint) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE rule WHEN 'all_success'::text THEN CASE WHEN ((failed + skipped) > 0) THEN 'skip'::text WHEN (unmet = 0) THEN 'run'::text ELSE NULL::text END WHEN 'all_failed'::text THEN CASE WHEN ((succeeded + skipped) > 0) THEN 'skip'::text WHEN (unmet = 0) THEN 'run'::text ELSE NULL::text END WHEN 'one_success'::text THEN CASE WHEN (succeeded > 0) THEN 'run'::text WHEN (unmet = 0) THEN 'skip'::text ELSE NULL::text END WHEN 'one_failed'::text THEN CASE WHEN (failed > 0) THEN 'run'::text WHEN (unmet = 0) THEN 'skip'::text ELSE NULL::text END WHEN 'none_failed'::text THEN CASE WHEN (failed > 0) THEN 'skip'::text WHEN (unmet = 0) THEN 'run'::text ELSE NULL::text END WHEN 'none_failed_min_one_success'::text THEN CASE WHEN (failed > 0) THEN 'skip'::text WHEN (unmet = 0) THEN CASE WHEN (succeeded > 0) THEN 'run'::text ELSE 'skip'::text END ELSE NULL::text END ELSE CASE WHEN (unmet = 0) THEN 'run'::text ELSE NULL::text END END;

CREATE FUNCTION foliot.settle() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
declare
    at timestamptz;
    ended foliot.ending[];
    upstreams uuid[];
    run_ids uuid[];
    has_limits boolean;
begin
    select max(finished_at),
        array_agg(row(
            id, state, parent_id,
            case
                when state = 'skipped' then error ->> 'upstream'
                when state <> 'succeeded' then coalesce(step, name, id::text)
            end,
            has_dependents
        )::foliot.ending) filter (where parent_id is not null or has_dependents),
        array_agg(job_id) filter (where job_id is not null and state = 'succeeded'),
        array_agg(id) filter (where job_id is not null and state = 'succeeded'),
        bool_or(foliot.has_limits(options))
    into at, ended, upstreams, run_ids, has_limits
    from gone where parent_id is not null or has_dependents or job_id is not null or foliot.has_limits(options);
    if has_limits then
        -- Without a look for runs that wait for the key: one that begins to wait just now cannot be seen from here.
        insert into foliot.turns (kind, key, look_at)
        select distinct 'concurrency', options #>> '{concurrency,key}', '-infinity'::timestamptz
        from gone where options #>> '{concurrency,key}' is not null
        union all
        -- A run that started has used its place in the rate. A run that did not start may have been ahead of others.
        select distinct 'rate', options #>> '{rate,key}', '-infinity'::timestamptz
        from gone where options #>> '{rate,key}' is not null and started_at is null;
    end if;
    if ended is not null and current_setting('foliot.is_settling', true) is distinct from 'yes' then
        perform foliot.settle_endings(ended, at);
    end if;
    if upstreams is not null and exists (
        select from foliot.job_dependencies where upstream_id = any (upstreams) and fires
    ) then
        perform foliot.fire_dependents(upstreams, run_ids, at);
    end if;
    return null;
end
$$;

CREATE FUNCTION foliot.settle_dependents(ended foliot.ending[], at timestamp with time zone) RETURNS foliot.ending[]
    LANGUAGE plpgsql
    AS $$
declare
    skipped foliot.ending[];
begin
    with recursive met as (
        delete from foliot.dependencies d using unnest(ended) as e
        where d.upstream_id = e.id and e.has_dependents
        returning d.run_id, d.nudge, e.state, e.blame
    ), nudged as (
        insert into foliot.nudges (run_id, nudge) select run_id, nudge from met where nudge is not null
    ), counted as materialized (
        select run_id, count(*) as number, count(*) filter (where state = 'succeeded') as succeeded,
            count(*) filter (where state in ('failed', 'cancelled')) as failed,
            count(*) filter (where state = 'skipped') as skipped,
            min(blame) as blame, min(blame) filter (where state = 'skipped') as blame_of_skipped
        from met where nudge is null group by run_id
    ), locked as materialized (
        -- A run without a counter waits for its own children.
        select id, rule, options, signal, due_at, delay_seconds, rank, unmet, met_succeeded, met_failed, met_skipped,
            blame
        from foliot.runs
        where id = any (array(select run_id from counted)) and state = 'waiting' and unmet is not null
        order by id for update
    ), tallied as (
        select l.id, l.rule, l.options, l.signal, l.due_at,
            greatest(l.due_at, at + l.delay_seconds * interval '1 second', at) as due, l.rank,
            l.unmet - c.number as unmet, coalesce(l.met_succeeded, 0) + c.succeeded as met_succeeded,
            coalesce(l.met_failed, 0) + c.failed as met_failed, coalesce(l.met_skipped, 0) + c.skipped as met_skipped,
            coalesce(l.blame, case l.rule when 'all_failed' then c.blame_of_skipped else c.blame end) as blame
        from locked l join counted c on c.run_id = l.id
    ), decided as materialized (
        select *, foliot.rule_verdict(rule, unmet, met_succeeded, met_failed, met_skipped) as verdict from tallied
    ), let_go as (
        update foliot.runs r
        set unmet = d.unmet, met_succeeded = d.met_succeeded, met_failed = d.met_failed, met_skipped = d.met_skipped,
            blame = d.blame,
            state = case
                when d.verdict is null then 'waiting'
                when d.options ? 'condition' then 'held'
                when d.due > at then 'scheduled'
                when d.options ? 'signal' and d.signal is null then 'held'
                when foliot.has_limits(d.options) then 'held'
                else 'ready'
            end,
            held_by = case
                when d.verdict is null then null
                when d.options ? 'condition' then 'condition'
                when d.due > at then null
                when d.options ? 'signal' and d.signal is null then 'signal'
                when foliot.has_limits(d.options) then 'limit'
            end,
            due_at = case
                when d.verdict is null or d.options ? 'condition' then d.due_at
                when d.due <= at and d.options ? 'signal' and d.signal is null
                    then at + foliot.signal_wait(d.options)
                else d.due
            end,
            rank = case
                when d.verdict is null or d.options ? 'condition' then d.rank
                else d.rank + (extract(epoch from d.due - d.due_at) * 1000000)::bigint
            end
        from decided d
        where r.id = d.id and d.verdict is distinct from 'skip'
    ), doomed as (
        select id, rule, blame, met_skipped from decided where verdict = 'skip'
        union
        -- `offset 0` keeps the planner to one index lookup a step; otherwise the cost is quadratic in the length.
        select r.id, r.rule, doomed.blame, 1::bigint
        from doomed
        cross join lateral (select e.run_id from foliot.dependencies e where e.upstream_id = doomed.id offset 0) as e
        cross join lateral (
            select r.id, r.rule from foliot.runs r
            where r.id = e.run_id and r.state = 'waiting'
                and foliot.rule_verdict(r.rule, r.unmet - 1, r.met_succeeded, r.met_failed, r.met_skipped + 1) = 'skip'
            offset 0
        ) as r
        where not exists (select from decided d where d.id = r.id)
    ), reasons as materialized (
        select distinct on (id) id, foliot.skip_error(rule, blame, met_skipped) as error, blame from doomed
        order by id, blame
    ), closed as (
        delete from foliot.runs r using reasons d
        where r.id = any (array(select id from reasons)) and r.id = d.id and r.state = 'waiting'
        returning r.*, d.error, d.blame as culprit
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name,
            reason, payload,
            options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, 'skipped', queue, task, name,
            case error ->> 'kind'
                when 'DependencyFailed' then 'dependency_failed'
                when 'DependencySkipped' then 'dependency_skipped'
                else 'rule_unmet'
            end,
            payload, options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        from closed
    )
    select array_agg(row(id, 'skipped', parent_id, culprit, has_dependents)::foliot.ending) into skipped from closed;
    return skipped;
end
$$;

CREATE FUNCTION foliot.settle_endings(ended foliot.ending[], at timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
declare
    counted foliot.ending[];
begin
    perform set_config('foliot.is_settling', 'yes', true);
    perform from foliot.parents
    where id = any (array(select p.root_id from foliot.parents p where p.id in (select parent_id from unnest(ended))))
    order by id for update;
    while ended is not null loop
        counted := ended;
        while exists (select from unnest(ended) as e where e.has_dependents) loop
            ended := foliot.settle_dependents(ended, at);
            counted := counted || ended;
            if ended is not null then
                perform foliot.note_endings(ended);
            end if;
        end loop;
        ended := foliot.settle_parents(counted, at);
        if ended is not null then
            perform foliot.note_endings(ended);
        end if;
    end loop;
    perform set_config('foliot.is_settling', '', true);
end
$$;

CREATE FUNCTION foliot.settle_parents(ended foliot.ending[], at timestamp with time zone) RETURNS foliot.ending[]
    LANGUAGE plpgsql
    AS $$
declare
    p record;
    complete uuid[] := '{}';
    more foliot.ending[];
    found foliot.ending[];
begin
    for p in
        with counted as (
            select parent_id, count(*) as number, count(*) filter (where state = 'succeeded') as succeeded,
                count(*) filter (where state = 'failed') as failed,
                count(*) filter (where state = 'cancelled') as cancelled,
                count(*) filter (where state = 'skipped') as skipped,
                min(blame) filter (where state = 'failed') as blame
            from unnest(ended) where parent_id is not null group by parent_id
        ), locked as materialized (
            select id from foliot.parents where id = any (array(select parent_id from counted)) order by id for update
        )
        update foliot.parents u
        set unfinished = u.unfinished - c.number, succeeded = u.succeeded + c.succeeded, failed = u.failed + c.failed,
            cancelled = u.cancelled + c.cancelled, skipped = u.skipped + c.skipped, blame = coalesce(u.blame, c.blame)
        from counted c join locked on locked.id = c.parent_id
        where u.id = c.parent_id
        returning u.id, u.kind, u.unfinished, u.next_index, u.total, u.capacity, u.stop is not null as is_stopping,
            u.blame,
            u.on_failure = 'fail_fast' and u.failed > 0 and u.stop is null as begins_to_stop
    loop
        if p.begins_to_stop then
            found := foliot.stop_children(
                p.id,
                jsonb_build_object('reason', 'fail_fast', 'message', 'another has failed: ' || coalesce(p.blame, ''),
                    'is_forced', false), at
            );
            more := more || found;
            if found is null and p.unfinished = 0 then
                complete := complete || p.id;
            end if;
        elsif p.next_index < p.total and not p.is_stopping then
            if p.unfinished <= p.capacity / 2 then
                perform foliot.refill(p.id, at);
            end if;
        elsif p.unfinished = 0 then
            complete := complete || p.id;
        end if;
    end loop;
    if complete = '{}' then
        return more;
    end if;
    update foliot.parents set finished_at = at where id = any (complete);
    with closed as (
        delete from foliot.runs r using foliot.parents f
        where f.id = any (complete) and r.id = f.run_id and r.state = 'waiting'
        returning r.*, f.kind as parent_kind, f.blame as culprit, foliot.parent_result(f) as result, case
            when f.failed > 0 then 'failed'
            when f.cancelled > 0 or f.next_index < f.total then 'cancelled'
            else 'succeeded'
        end as verdict
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name,
            reason, payload,
            options, result, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents, fingerprint
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, verdict, queue, task, name,
            case verdict
                when 'failed' then 'step_failed'
                when 'cancelled' then coalesce(cancel ->> 'reason', 'cancelled')
            end,
            payload, options, result,
            case verdict
                when 'failed' then jsonb_build_object(
                    'kind', 'StepFailed',
                    'message',
                    case parent_kind when 'map' then 'an item has failed: ' else 'a step has failed: ' end
                        || coalesce(culprit, '')
                )
                when 'cancelled' then jsonb_build_object('kind', 'Cancelled', 'message',
                    coalesce(cancel ->> 'message', ''))
            end,
            job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents,
            case verdict when 'failed' then md5(task || ': ' || coalesce(name, step, '') || ': '
                || coalesce(culprit, '')) end
        from closed
    )
    select more || array_agg(row(
        id, verdict, parent_id, case when verdict <> 'succeeded' then coalesce(step, name, id::text) end, has_dependents
    )::foliot.ending)
    into more from closed;
    return more;
end
$$;

CREATE FUNCTION foliot.signal_wait(options jsonb) RETURNS interval
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (COALESCE(((options #>> '{signal,timeout_seconds}'::text[]))::double precision, (315360000)::double precision) * '00:00:01'::interval);

CREATE FUNCTION foliot.skip_error(rule text, blame text, skipped bigint) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (blame IS NOT NULL) THEN jsonb_build_object('kind', 'DependencyFailed', 'message', ('dependency_failed: '::text || blame), 'upstream', blame) WHEN (rule = ANY (ARRAY['one_failed'::text, 'all_failed'::text])) THEN jsonb_build_object('kind', 'RuleUnmet', 'message', (('rule '::text || rule) || ': too little has failed'::text)) WHEN (skipped > 0) THEN jsonb_build_object('kind', 'DependencySkipped', 'message', 'what it waits for was skipped') ELSE jsonb_build_object('kind', 'RuleUnmet', 'message', (('rule '::text || rule) || ' can''t be met'::text)) END;

CREATE FUNCTION foliot.stop_children(stopped_id uuid, why jsonb, at timestamp with time zone) RETURNS foliot.ending[]
    LANGUAGE plpgsql
    AS $$
declare
    ended foliot.ending[];
begin
    update foliot.parents set stop = why where id = stopped_id;
    update foliot.runs set cancel = why
    where id = any (array(
        select r.id from foliot.runs r
        where r.parent_id = stopped_id and r.cancel is null and r.rule is distinct from 'always'
            and (r.state = 'running' or exists (select from foliot.parents p where p.run_id = r.id))
        for update of r skip locked
    ));
    with closed as (
        delete from foliot.runs
        where id = any (array(
            select id from foliot.runs
            where parent_id = stopped_id and state <> 'running' and cancel is null and rule is distinct from 'always'
                and not exists (select from foliot.parents p where p.run_id = runs.id)
            for update skip locked
        ))
        returning *
    ), kept as (
        insert into foliot.history (
            id, created_at, due_at, started_at, finished_at, token, attempt, lost, priority, state, queue, task, name,
            reason, payload,
            options, error, job_id, tick_at, rerun_of, parent_id, step, upstream, has_dependents
        )
        select id, created_at, due_at, started_at, at, token, attempt, lost, priority, 'cancelled', queue, task, name,
            why ->> 'reason',
            payload, options, jsonb_build_object('kind', 'Cancelled', 'message', why ->> 'message'), job_id, tick_at,
            rerun_of, parent_id,
            step, upstream, has_dependents
        from closed
    )
    select array_agg(row(id, 'cancelled', parent_id, step, has_dependents)::foliot.ending) into ended from closed;
    return ended;
end
$$;

CREATE FUNCTION foliot.submit(job jsonb) RETURNS uuid
    LANGUAGE plpgsql
    AS $_$
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
$_$;

CREATE FUNCTION foliot.template_fault(payload jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT (('payload: no placeholder of a one-off job begins '::text || quote_literal(substr(texts.left_over, POSITION(('{{'::text) IN (texts.left_over)), 60))) || '; to keep the braces as they are, set templates to false'::text) FROM (SELECT regexp_replace((leaf.leaf #>> '{}'::text[]), (((('\{\{\s*(?:"[^"]*"|''[^'']*''|(?:run_id|attempt|task|queue|namespace|is_backfill)\y'::text || '|(?:scheduled_for|previous_tick|next_tick|timezone|job)\y(?=[^{}]*\|\s*default\y)'::text) || '|signal\y(?:\.[\w-]+|\[[^]]*\])*|payload(?:\.[\w-]+|\[[^]]*\])+)'::text) || '(?:\s*\|\s*(?:(?:date|time|iso|epoch|json|quote)\y'::text) || '|(?:format|add|in_zone|default)\y\s*\(?\s*(?:"[^"]*"|''[^'']*'')\s*\)?))*\s*\}\}'::text), ''::text, 'g'::text) AS left_over FROM jsonb_path_query(template_fault.payload, 'strict $.**'::jsonpath) leaf(leaf) WHERE ((jsonb_typeof(leaf.leaf) = 'string'::text) AND ((leaf.leaf #>> '{}'::text[]) ~~ '%{{%'::text))) texts WHERE (texts.left_over ~~ '%{{%'::text) LIMIT 1);

CREATE FUNCTION foliot.utc_text(at timestamp with time zone) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN to_char((at AT TIME ZONE 'utc'::text), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'::text);

CREATE FUNCTION foliot.with_tick(options jsonb, at double precision, previous double precision, next double precision, origin text, schedule jsonb, name text, job_id uuid) RETURNS jsonb
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (COALESCE(options, '{}'::jsonb) || jsonb_build_object('tick', jsonb_strip_nulls(jsonb_build_object('at', at, 'previous', previous, 'next', next, 'origin', origin, 'zone', (schedule -> 'timezone'::text), 'job', name, 'job_id', job_id))));

CREATE TABLE foliot.alert_channels (
    name text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    channel jsonb NOT NULL,
    secrets jsonb NOT NULL
);

CREATE TABLE foliot.alert_counts (
    rule text NOT NULL,
    subject text NOT NULL,
    at timestamp with time zone NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL
);

CREATE TABLE foliot.alert_deliveries (
    id uuid NOT NULL,
    alert_id uuid NOT NULL,
    number bigint NOT NULL,
    channel text NOT NULL,
    state text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    finished_at timestamp with time zone,
    error text,
    message jsonb NOT NULL,
    CONSTRAINT alert_deliveries_state_is_known CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'failed'::text, 'dropped'::text])))
);

CREATE TABLE foliot.alert_rules (
    name text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    updated_by text NOT NULL,
    heartbeat text,
    rule jsonb NOT NULL
);

CREATE TABLE foliot.alert_silences (
    id uuid NOT NULL,
    namespace text NOT NULL,
    rule text,
    subject text,
    reason text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    until_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.alerts (
    id uuid NOT NULL,
    namespace text NOT NULL,
    rule text NOT NULL,
    subject text NOT NULL,
    state text NOT NULL,
    severity text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    since timestamp with time zone NOT NULL,
    opened_at timestamp with time zone,
    resolved_at timestamp with time zone,
    resolved_by text,
    last_at timestamp with time zone,
    number bigint NOT NULL,
    title text NOT NULL,
    summary text NOT NULL,
    subjects jsonb NOT NULL,
    log_tail text NOT NULL,
    page text NOT NULL,
    messages bigint DEFAULT 0 NOT NULL,
    told_at timestamp with time zone,
    acknowledged_at timestamp with time zone,
    acknowledged_by text,
    note text,
    CONSTRAINT alerts_resolved_have_an_end CHECK (((state = 'resolved'::text) = (resolved_at IS NOT NULL))),
    CONSTRAINT alerts_state_is_known CHECK ((state = ANY (ARRAY['pending'::text, 'open'::text, 'resolved'::text])))
);

CREATE TABLE foliot.runs (
    id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    rank bigint NOT NULL,
    token bigint DEFAULT 0 NOT NULL,
    attempt bigint DEFAULT 0 NOT NULL,
    lost bigint DEFAULT 0 NOT NULL,
    priority bigint DEFAULT 0 NOT NULL,
    worker_id uuid,
    state text NOT NULL,
    queue text NOT NULL,
    task text NOT NULL,
    name text,
    payload jsonb,
    options jsonb,
    job_id uuid,
    tick_at timestamp with time zone,
    cancel jsonb,
    expires_at timestamp with time zone,
    rerun_of uuid,
    unique_key text,
    held_by text,
    is_probe boolean,
    progress jsonb,
    parent_id uuid,
    step text,
    upstream uuid[],
    has_dependents boolean,
    rule text,
    unmet bigint,
    met_succeeded bigint,
    met_failed bigint,
    met_skipped bigint,
    blame text,
    delay_seconds double precision,
    signal jsonb,
    seen_rank bigint,
    awaits jsonb,
    CONSTRAINT runs_held_for_a_reason CHECK (((state = 'held'::text) = (held_by IS NOT NULL))),
    CONSTRAINT runs_running_has_a_worker CHECK (((state = 'running'::text) = (worker_id IS NOT NULL))),
    CONSTRAINT runs_state_is_live CHECK ((state = ANY (ARRAY['waiting'::text, 'scheduled'::text, 'held'::text, 'ready'::text, 'running'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.05');

CREATE VIEW foliot.all_runs AS
 SELECT runs.id,
    true AS is_live,
    runs.name,
    runs.task,
    runs.queue,
    runs.state,
    NULL::text AS reason,
    runs.priority,
    runs.attempt,
    runs.worker_id,
    runs.job_id,
    runs.tick_at,
    runs.rerun_of,
    NULL::uuid AS rerun_as,
    NULL::jsonb AS error,
    runs.due_at,
    runs.created_at,
    runs.started_at,
    NULL::timestamp with time zone AS finished_at,
    runs.parent_id,
    runs.step,
    (runs.options -> 'tags'::text) AS tags,
    (runs.options ? 'tags'::text) AS is_tagged,
    runs.payload
   FROM foliot.runs
UNION ALL
 SELECT history.id,
    false AS is_live,
    history.name,
    history.task,
    history.queue,
    history.state,
    history.reason,
    history.priority,
    history.attempt,
    history.worker_id,
    history.job_id,
    history.tick_at,
    history.rerun_of,
    history.rerun_as,
    history.error,
    history.due_at,
    history.created_at,
    history.started_at,
    history.finished_at,
    history.parent_id,
    history.step,
    (history.options -> 'tags'::text) AS tags,
    (history.options ? 'tags'::text) AS is_tagged,
    history.payload
   FROM foliot.history;

CREATE TABLE foliot.announcements (
    hash text NOT NULL,
    tasks json NOT NULL,
    announced_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.archived_days (
    kind text NOT NULL,
    day date NOT NULL,
    namespace text NOT NULL,
    rows bigint NOT NULL,
    objects bigint NOT NULL,
    first_id uuid NOT NULL,
    last_id uuid NOT NULL,
    location text NOT NULL
);

CREATE TABLE foliot.archived_objects (
    kind text NOT NULL,
    day date NOT NULL,
    name text NOT NULL,
    namespace text NOT NULL,
    rows bigint NOT NULL,
    bytes bigint NOT NULL,
    sha256 text NOT NULL,
    first_id uuid NOT NULL,
    last_id uuid NOT NULL
);

CREATE TABLE foliot.archives (
    kind text NOT NULL,
    location text NOT NULL,
    at timestamp with time zone NOT NULL,
    id uuid NOT NULL,
    owner uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    failing_since timestamp with time zone,
    error text
);

CREATE TABLE foliot.attempts (
    run_id uuid NOT NULL,
    token bigint NOT NULL,
    attempt bigint NOT NULL,
    worker_id uuid NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone NOT NULL,
    outcome text NOT NULL,
    error jsonb,
    output bytea,
    refused_at timestamp with time zone,
    CONSTRAINT attempts_outcome_is_known CHECK ((outcome = ANY (ARRAY['error'::text, 'timeout'::text, 'lost'::text, 'snoozed'::text, 'suspended'::text])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE foliot.audit (
    id uuid NOT NULL,
    at timestamp with time zone NOT NULL,
    actor text NOT NULL,
    token_id text,
    role text,
    namespace text NOT NULL,
    address text,
    request_id text NOT NULL,
    method text NOT NULL,
    path text NOT NULL,
    action text NOT NULL,
    target text,
    status bigint NOT NULL,
    code text,
    actor_namespace text
)
PARTITION BY RANGE (at);

CREATE TABLE foliot.calendars (
    name text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    days jsonb NOT NULL
);

CREATE TABLE foliot.checkpoints (
    run_id uuid NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    function text,
    token bigint NOT NULL,
    attempt bigint NOT NULL,
    lost bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    due_at timestamp with time zone,
    child_id uuid,
    result json,
    error jsonb,
    is_unused boolean DEFAULT false NOT NULL,
    CONSTRAINT checkpoints_kind_is_known CHECK ((kind = ANY (ARRAY['step'::text, 'transaction'::text, 'sleep'::text, 'signal'::text, 'call'::text])))
);

CREATE TABLE foliot.circuits (
    task text NOT NULL,
    failures bigint NOT NULL,
    open_until timestamp with time zone,
    probe_id uuid,
    updated_at timestamp with time zone NOT NULL,
    probe_at timestamp with time zone
)
WITH (fillfactor='50');

CREATE TABLE foliot.dead_groups (
    namespace text NOT NULL,
    fingerprint text NOT NULL,
    note text,
    noted_by text,
    noted_at timestamp with time zone,
    dismissed_until timestamp with time zone,
    dismissed_by text
);

CREATE TABLE foliot.dead_messages (
    id uuid NOT NULL,
    source text NOT NULL,
    at timestamp with time zone NOT NULL,
    message_id text NOT NULL,
    reason text NOT NULL,
    body bytea NOT NULL,
    headers jsonb NOT NULL
);

CREATE TABLE foliot.dependencies (
    upstream_id uuid NOT NULL,
    run_id uuid NOT NULL,
    nudge text,
    CONSTRAINT dependencies_nudge_is_known CHECK ((nudge = ANY (ARRAY['wake'::text, 'cancel'::text])))
);

CREATE TABLE foliot.exports (
    name text NOT NULL,
    at timestamp with time zone NOT NULL,
    id uuid NOT NULL,
    owner uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.gone_workers (
    id uuid NOT NULL,
    name text,
    queues jsonb,
    labels jsonb,
    started_at timestamp with time zone,
    gone_at timestamp with time zone NOT NULL,
    is_dead boolean NOT NULL,
    lost bigint DEFAULT 0 NOT NULL,
    lost_runs uuid[] DEFAULT '{}'::uuid[] NOT NULL
);

CREATE TABLE foliot.heartbeats (
    name text NOT NULL,
    at timestamp with time zone NOT NULL,
    by text NOT NULL,
    number bigint DEFAULT 1 NOT NULL
);

CREATE TABLE foliot.idempotency (
    key text NOT NULL,
    fingerprint text NOT NULL,
    answer json NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.job_dependencies (
    job_id uuid NOT NULL,
    upstream_id uuid NOT NULL,
    fires boolean NOT NULL,
    aging bigint NOT NULL,
    succeeded_at timestamp with time zone,
    run_id uuid
);

CREATE TABLE foliot.job_series (
    job text NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    skipped bigint NOT NULL,
    seconds double precision NOT NULL,
    buckets bigint[] NOT NULL,
    succeeded_at timestamp with time zone,
    ended_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE foliot.job_versions (
    job_id uuid NOT NULL,
    version bigint NOT NULL,
    made_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    runs_left bigint,
    made_by text,
    deleted_by text,
    definition jsonb NOT NULL
);

CREATE TABLE foliot.jobs (
    id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    next_at timestamp with time zone,
    fire_at timestamp with time zone,
    paused_at timestamp with time zone,
    paused_until timestamp with time zone,
    shard bigint NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    priority bigint NOT NULL,
    runs_left bigint,
    name text NOT NULL COLLATE pg_catalog."C",
    task text NOT NULL,
    queue text NOT NULL,
    paused_reason text,
    paused_by text,
    schedule jsonb NOT NULL,
    payload jsonb,
    options jsonb,
    calendar text GENERATED ALWAYS AS ((schedule ->> 'calendar'::text)) STORED,
    calendar_version bigint,
    utc_offset bigint,
    due_bucket bigint GENERATED ALWAYS AS (foliot.due_bucket(fire_at)) STORED,
    CONSTRAINT jobs_fire_with_their_tick CHECK (((fire_at IS NULL) OR (next_at IS NOT NULL))),
    CONSTRAINT jobs_paused_do_not_fire CHECK (((paused_at IS NULL) OR (fire_at IS NULL)))
)
WITH (fillfactor='70');

CREATE TABLE foliot.links (
    run_id uuid NOT NULL,
    upstream_id uuid NOT NULL,
    tick_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.logs (
    run_id uuid NOT NULL,
    token bigint NOT NULL,
    part bigint NOT NULL,
    written_at timestamp with time zone NOT NULL,
    chunk bytea NOT NULL
)
PARTITION BY RANGE (written_at);

CREATE TABLE foliot.map_items (
    map_id uuid NOT NULL,
    place bigint NOT NULL,
    value jsonb NOT NULL
);

CREATE TABLE foliot.migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    works_beside bigint,
    functions jsonb
);

CREATE TABLE foliot.nudges (
    run_id uuid NOT NULL,
    nudge text NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE TABLE foliot.pauses (
    kind text NOT NULL,
    name text NOT NULL,
    paused_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone,
    reason text,
    actor text,
    CONSTRAINT pauses_kind_is_known CHECK ((kind = ANY (ARRAY['queue'::text, 'task'::text, 'everything'::text])))
);

CREATE TABLE foliot.processes (
    id uuid NOT NULL,
    part text NOT NULL,
    name text NOT NULL,
    knows bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.queues (
    name text NOT NULL,
    max_running bigint,
    max_depth bigint,
    updated_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.rate_starts (
    rate_key text NOT NULL,
    started_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.recorded (
    step bigint NOT NULL,
    at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.replays (
    id uuid NOT NULL,
    namespace text NOT NULL,
    fingerprint text NOT NULL,
    actor text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    state text DEFAULT 'waiting'::text NOT NULL,
    reason text,
    released_at timestamp with time zone,
    finished_at timestamp with time zone,
    old_ids uuid[] NOT NULL,
    new_ids uuid[] NOT NULL,
    total bigint NOT NULL,
    released bigint DEFAULT 1 NOT NULL,
    started bigint DEFAULT 1 NOT NULL,
    payload jsonb,
    apart_seconds double precision NOT NULL,
    keeps_checkpoints boolean NOT NULL,
    is_repeated boolean NOT NULL,
    CONSTRAINT replays_state_is_known CHECK ((state = ANY (ARRAY['waiting'::text, 'releasing'::text, 'done'::text, 'stopped'::text])))
);

CREATE TABLE foliot.rollups (
    step bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    namespace text NOT NULL,
    queue text NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    cancelled bigint NOT NULL,
    skipped bigint NOT NULL,
    waits bigint[] NOT NULL,
    ready bigint NOT NULL
);

CREATE TABLE foliot.schedulers (
    id uuid NOT NULL,
    name text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    beat_at timestamp with time zone
)
WITH (fillfactor='50');

CREATE TABLE foliot.sessions (
    hash bytea NOT NULL,
    token_id text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.shards (
    id bigint NOT NULL,
    owner_id uuid,
    epoch bigint DEFAULT 0 NOT NULL,
    expires_at timestamp with time zone,
    zones text
)
WITH (fillfactor='50');

CREATE TABLE foliot.signals (
    run_id uuid NOT NULL,
    name text NOT NULL,
    sent_at timestamp with time zone NOT NULL,
    signal json NOT NULL
);

CREATE TABLE foliot.source_places (
    source text NOT NULL,
    partition text NOT NULL,
    next bigint NOT NULL
);

CREATE TABLE foliot.sources (
    name text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    definition jsonb NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    owner uuid,
    expires_at timestamp with time zone,
    received_at timestamp with time zone,
    failing_since timestamp with time zone,
    error text
);

CREATE TABLE foliot.tallies (
    slot bigint NOT NULL,
    name text NOT NULL,
    value double precision NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE foliot.tasks (
    name text NOT NULL,
    queue text NOT NULL,
    seen_at timestamp with time zone NOT NULL,
    guarantee text,
    tags jsonb,
    announcement text
);

CREATE TABLE foliot.ticks (
    job_id uuid NOT NULL,
    tick_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone,
    noted_at timestamp with time zone NOT NULL,
    reason text NOT NULL,
    blocked_by uuid,
    CONSTRAINT ticks_reason_is_known CHECK ((reason = ANY (ARRAY['overlap'::text, 'missed'::text, 'superseded'::text, 'paused'::text, 'excluded'::text])))
)
PARTITION BY RANGE (noted_at);

CREATE TABLE foliot.tokens (
    id text NOT NULL,
    name text NOT NULL,
    hash bytea NOT NULL,
    role text NOT NULL,
    namespace text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    created_by text NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    used_at timestamp with time zone,
    created_by_id text,
    CONSTRAINT tokens_role_is_known CHECK ((role = ANY (ARRAY['viewer'::text, 'submitter'::text, 'operator'::text, 'admin'::text, 'worker'::text])))
);

CREATE TABLE foliot.turns (
    kind text NOT NULL,
    key text NOT NULL,
    look_at timestamp with time zone NOT NULL,
    CONSTRAINT turns_kind_is_known CHECK ((kind = ANY (ARRAY['concurrency'::text, 'rate'::text])))
)
WITH (autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0');

CREATE TABLE foliot.views (
    namespace text NOT NULL,
    owner text NOT NULL,
    page text NOT NULL,
    name text NOT NULL,
    search text NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    updated_by text NOT NULL
);

CREATE TABLE foliot.workers (
    id uuid NOT NULL,
    name text NOT NULL,
    queues jsonb NOT NULL,
    tasks text[] NOT NULL,
    started_at timestamp with time zone NOT NULL,
    beat_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    draining_at timestamp with time zone,
    left_running bigint DEFAULT 0 NOT NULL,
    announcement text,
    token_id text,
    session_id uuid,
    session_seconds double precision,
    session_free_at timestamp with time zone
)
WITH (fillfactor='50');

ALTER TABLE ONLY foliot.alert_channels
    ADD CONSTRAINT alert_channels_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.alert_counts
    ADD CONSTRAINT alert_counts_pkey PRIMARY KEY (rule, subject, at);

ALTER TABLE ONLY foliot.alert_deliveries
    ADD CONSTRAINT alert_deliveries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.alert_rules
    ADD CONSTRAINT alert_rules_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.alert_silences
    ADD CONSTRAINT alert_silences_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.alerts
    ADD CONSTRAINT alerts_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.announcements
    ADD CONSTRAINT announcements_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY foliot.archived_days
    ADD CONSTRAINT archived_days_pkey PRIMARY KEY (kind, day, namespace);

ALTER TABLE ONLY foliot.archived_objects
    ADD CONSTRAINT archived_objects_pkey PRIMARY KEY (kind, day, name);

ALTER TABLE ONLY foliot.archives
    ADD CONSTRAINT archives_pkey PRIMARY KEY (kind);

ALTER TABLE ONLY foliot.calendars
    ADD CONSTRAINT calendars_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.checkpoints
    ADD CONSTRAINT checkpoints_pkey PRIMARY KEY (run_id, name);

ALTER TABLE ONLY foliot.circuits
    ADD CONSTRAINT circuits_pkey PRIMARY KEY (task);

ALTER TABLE ONLY foliot.dead_groups
    ADD CONSTRAINT dead_groups_pkey PRIMARY KEY (namespace, fingerprint);

ALTER TABLE ONLY foliot.dead_messages
    ADD CONSTRAINT dead_messages_are_unique UNIQUE (source, message_id);

ALTER TABLE ONLY foliot.dead_messages
    ADD CONSTRAINT dead_messages_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.disabled_tasks
    ADD CONSTRAINT disabled_tasks_pkey PRIMARY KEY (namespace, task);

ALTER TABLE ONLY foliot.exports
    ADD CONSTRAINT exports_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.gone_workers
    ADD CONSTRAINT gone_workers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.heartbeats
    ADD CONSTRAINT heartbeats_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (key);

ALTER TABLE ONLY foliot.job_dependencies
    ADD CONSTRAINT job_dependencies_pkey PRIMARY KEY (job_id, upstream_id);

ALTER TABLE ONLY foliot.job_series
    ADD CONSTRAINT job_series_pkey PRIMARY KEY (job);

ALTER TABLE ONLY foliot.job_versions
    ADD CONSTRAINT job_versions_pkey PRIMARY KEY (job_id, version);

ALTER TABLE ONLY foliot.jobs
    ADD CONSTRAINT jobs_name_is_unique UNIQUE (name);

ALTER TABLE ONLY foliot.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (run_id, upstream_id);

ALTER TABLE ONLY foliot.map_items
    ADD CONSTRAINT map_items_pkey PRIMARY KEY (map_id, place);

ALTER TABLE ONLY foliot.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY foliot.parents
    ADD CONSTRAINT parents_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.pauses
    ADD CONSTRAINT pauses_pkey PRIMARY KEY (kind, name);

ALTER TABLE ONLY foliot.processes
    ADD CONSTRAINT processes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.recorded
    ADD CONSTRAINT recorded_pkey PRIMARY KEY (step, at);

ALTER TABLE ONLY foliot.replays
    ADD CONSTRAINT replays_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.rollups
    ADD CONSTRAINT rollups_pkey PRIMARY KEY (step, namespace, at, queue);

ALTER TABLE ONLY foliot.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.schedulers
    ADD CONSTRAINT schedulers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (hash);

ALTER TABLE ONLY foliot.shards
    ADD CONSTRAINT shards_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.signals
    ADD CONSTRAINT signals_pkey PRIMARY KEY (run_id, name);

ALTER TABLE ONLY foliot.source_places
    ADD CONSTRAINT source_places_pkey PRIMARY KEY (source, partition);

ALTER TABLE ONLY foliot.sources
    ADD CONSTRAINT sources_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.tallies
    ADD CONSTRAINT tallies_pkey PRIMARY KEY (slot, name);

ALTER TABLE ONLY foliot.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.views
    ADD CONSTRAINT views_pkey PRIMARY KEY (namespace, owner, page, name);

ALTER TABLE ONLY foliot.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

CREATE INDEX alert_deliveries_due ON foliot.alert_deliveries USING btree (due_at) WHERE (state = 'waiting'::text);

CREATE INDEX alert_deliveries_in_line ON foliot.alert_deliveries USING btree (alert_id, channel, number) WHERE (state = 'waiting'::text);

CREATE INDEX alert_deliveries_of_alert ON foliot.alert_deliveries USING btree (alert_id, number);

CREATE INDEX alert_deliveries_of_channel ON foliot.alert_deliveries USING btree (channel, created_at);

CREATE INDEX alert_rules_heartbeat ON foliot.alert_rules USING btree (heartbeat) WHERE (heartbeat IS NOT NULL);

CREATE INDEX alert_silences_until ON foliot.alert_silences USING btree (until_at);

CREATE INDEX alerts_of_namespace ON foliot.alerts USING btree (namespace, id);

CREATE INDEX alerts_resolved ON foliot.alerts USING btree (resolved_at) WHERE (state = 'resolved'::text);

CREATE UNIQUE INDEX alerts_unresolved ON foliot.alerts USING btree (rule, subject) WHERE (state <> 'resolved'::text);

CREATE INDEX attempts_finished ON ONLY foliot.attempts USING brin (finished_at) WITH (pages_per_range='32', autosummarize='on');

CREATE INDEX attempts_run ON ONLY foliot.attempts USING btree (run_id, token);

CREATE INDEX audit_at ON ONLY foliot.audit USING btree (at, id);

CREATE INDEX checkpoints_started ON foliot.checkpoints USING btree (started_at);

CREATE INDEX dead_messages_of_source ON foliot.dead_messages USING btree (source, id);

CREATE INDEX dependencies_of_run ON foliot.dependencies USING btree (upstream_id, run_id);

CREATE INDEX gone_workers_at ON foliot.gone_workers USING btree (gone_at, id);

CREATE INDEX history_children ON ONLY foliot.history USING btree (parent_id) WHERE (parent_id IS NOT NULL);

CREATE INDEX history_dead ON ONLY foliot.history USING btree (finished_at, id) WHERE (state = 'failed'::text);

CREATE INDEX history_failed ON ONLY foliot.history USING btree (id) WHERE (state = 'failed'::text);

CREATE INDEX history_finished ON ONLY foliot.history USING brin (finished_at) WITH (pages_per_range='32', autosummarize='on');

CREATE INDEX history_id ON ONLY foliot.history USING btree (id);

CREATE INDEX history_job ON ONLY foliot.history USING btree (job_id, tick_at) WHERE (job_id IS NOT NULL);

CREATE INDEX history_tagged ON ONLY foliot.history USING btree (id) WHERE (options ? 'tags'::text);

CREATE INDEX idempotency_expiring ON foliot.idempotency USING btree (expires_at);

CREATE INDEX job_dependencies_upstream ON foliot.job_dependencies USING btree (upstream_id);

CREATE INDEX job_versions_deleted ON foliot.job_versions USING btree (((definition ->> 'name'::text)), deleted_at) WHERE (deleted_at IS NOT NULL);

CREATE INDEX job_versions_forgotten ON foliot.job_versions USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);

CREATE INDEX jobs_calendar ON foliot.jobs USING btree (calendar, calendar_version) WHERE (calendar IS NOT NULL);

CREATE INDEX jobs_calendar_names ON foliot.jobs USING btree (calendar, name) WHERE (calendar IS NOT NULL);

CREATE INDEX jobs_due ON foliot.jobs USING btree (shard, due_bucket) WHERE (due_bucket IS NOT NULL);

CREATE INDEX jobs_over ON foliot.jobs USING btree (name) WHERE ((due_bucket IS NULL) AND (paused_at IS NULL));

CREATE INDEX jobs_paused ON foliot.jobs USING btree (name) WHERE (paused_at IS NOT NULL);

CREATE INDEX jobs_resuming ON foliot.jobs USING btree (paused_until) WHERE (paused_until IS NOT NULL);

CREATE INDEX jobs_tagged ON foliot.jobs USING btree (name) WHERE (options ? 'tags'::text);

CREATE INDEX logs_run ON ONLY foliot.logs USING btree (run_id, token, part);

CREATE INDEX parents_finished ON foliot.parents USING btree (finished_at) WHERE (finished_at IS NOT NULL);

CREATE UNIQUE INDEX parents_run ON foliot.parents USING btree (run_id);

CREATE INDEX parents_stopping ON foliot.parents USING btree (id) WHERE ((stop IS NOT NULL) AND (finished_at IS NULL));

CREATE INDEX rate_starts_key ON foliot.rate_starts USING btree (rate_key, started_at);

CREATE INDEX rate_starts_old ON foliot.rate_starts USING btree (started_at);

CREATE INDEX replays_of_namespace ON foliot.replays USING btree (namespace, id);

CREATE UNIQUE INDEX replays_open ON foliot.replays USING btree (namespace, fingerprint) WHERE (state = ANY (ARRAY['waiting'::text, 'releasing'::text]));

CREATE INDEX rollups_old ON foliot.rollups USING btree (step, at);

CREATE INDEX runs_approvals ON foliot.runs USING btree (id) WHERE (held_by = 'signal'::text);

CREATE INDEX runs_arrived ON foliot.runs USING btree (rank) WHERE ((held_by = 'limit'::text) AND (seen_rank IS DISTINCT FROM rank));

CREATE INDEX runs_at_limit ON foliot.runs USING btree (((options #>> '{concurrency,key}'::text[])), rank) WHERE ((held_by = 'limit'::text) AND ((options #>> '{concurrency,at_limit}'::text[]) = ANY (ARRAY['drop_new'::text, 'cancel_old'::text])));

CREATE INDEX runs_awaiting_signal ON foliot.runs USING btree (due_at) WHERE (held_by = 'signal'::text);

CREATE INDEX runs_cancelled ON foliot.runs USING btree (id) WHERE (cancel IS NOT NULL);

CREATE INDEX runs_children ON foliot.runs USING btree (parent_id) WHERE (parent_id IS NOT NULL);

CREATE INDEX runs_conditional ON foliot.runs USING btree (id) WHERE (held_by = 'condition'::text);

CREATE INDEX runs_expiring ON foliot.runs USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (state <> 'running'::text) AND (started_at IS NULL));

CREATE INDEX runs_held ON foliot.runs USING btree (job_id) WHERE (state = 'held'::text);

CREATE INDEX runs_in_turn ON foliot.runs USING btree (queue, ((options ->> 'fairness_key'::text)), rank) WHERE (((options ->> 'fairness_key'::text) IS NOT NULL) AND (state = 'ready'::text));

CREATE INDEX runs_job ON foliot.runs USING btree (job_id, tick_at) WHERE (job_id IS NOT NULL);

CREATE INDEX runs_of_key ON foliot.runs USING btree (((options #>> '{concurrency,key}'::text[]))) WHERE (((options #>> '{concurrency,key}'::text[]) IS NOT NULL) AND (state = ANY (ARRAY['ready'::text, 'running'::text])));

CREATE INDEX runs_of_key_by_rate ON foliot.runs USING btree (((options #>> '{concurrency,key}'::text[])), ((options #>> '{rate,key}'::text[])), rank) WHERE ((held_by = 'limit'::text) AND ((options #>> '{concurrency,key}'::text[]) IS NOT NULL));

CREATE INDEX runs_of_rate_by_key ON foliot.runs USING btree (((options #>> '{rate,key}'::text[])), ((options #>> '{concurrency,key}'::text[])), rank) WHERE ((held_by = 'limit'::text) AND ((options #>> '{rate,key}'::text[]) IS NOT NULL));

CREATE INDEX runs_overlapping ON foliot.runs USING btree (job_id) WHERE (held_by = 'overlap'::text);

CREATE INDEX runs_parked ON foliot.runs USING btree (queue, task, rank) WHERE (held_by = ANY (ARRAY['pause'::text, 'circuit'::text, 'no_worker'::text]));

CREATE INDEX runs_ready ON foliot.runs USING btree (queue, rank) WHERE (state = 'ready'::text);

CREATE INDEX runs_running ON foliot.runs USING btree (worker_id) WHERE (state = 'running'::text);

CREATE INDEX runs_scheduled ON foliot.runs USING btree (due_at) WHERE (state = 'scheduled'::text);

CREATE INDEX runs_tagged ON foliot.runs USING btree (id) WHERE (options ? 'tags'::text);

CREATE UNIQUE INDEX runs_unique ON foliot.runs USING btree (unique_key) WHERE (unique_key IS NOT NULL);

CREATE INDEX runs_waiting ON foliot.runs USING btree (id) WHERE ((state = 'waiting'::text) AND (parent_id IS NULL));

CREATE INDEX runs_waiting_for_key ON foliot.runs USING btree (((options #>> '{concurrency,key}'::text[])), rank) WHERE ((held_by = 'limit'::text) AND ((options #>> '{concurrency,key}'::text[]) IS NOT NULL));

CREATE INDEX runs_waiting_for_rate ON foliot.runs USING btree (((options #>> '{rate,key}'::text[])), rank) WHERE ((held_by = 'limit'::text) AND ((options #>> '{rate,key}'::text[]) IS NOT NULL));

CREATE INDEX sessions_expiring ON foliot.sessions USING btree (expires_at);

CREATE INDEX signals_sent ON foliot.signals USING btree (sent_at);

CREATE INDEX ticks_job ON ONLY foliot.ticks USING btree (job_id, tick_at);

CREATE INDEX ticks_noted ON ONLY foliot.ticks USING brin (noted_at) WITH (pages_per_range='32', autosummarize='on');

CREATE UNIQUE INDEX tokens_name_is_unique ON foliot.tokens USING btree (namespace, name) WHERE (revoked_at IS NULL);

CREATE INDEX turns_due ON foliot.turns USING btree (look_at);

CREATE INDEX turns_of_rate ON foliot.turns USING btree (key, look_at) WHERE (kind = 'rate'::text);

CREATE TRIGGER audit_is_append_only BEFORE DELETE OR UPDATE ON foliot.audit FOR EACH ROW EXECUTE FUNCTION foliot.refuse_change();

CREATE TRIGGER notify AFTER INSERT ON foliot.history REFERENCING NEW TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION foliot.notify_endings();

CREATE TRIGGER settle AFTER INSERT ON foliot.history REFERENCING NEW TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION foliot.settle();

ALTER TABLE ONLY foliot.alert_counts
    ADD CONSTRAINT alert_counts_rule_fkey FOREIGN KEY (rule) REFERENCES foliot.alert_rules(name) ON DELETE CASCADE;

ALTER TABLE ONLY foliot.alert_deliveries
    ADD CONSTRAINT alert_deliveries_alert_id_fkey FOREIGN KEY (alert_id) REFERENCES foliot.alerts(id) ON DELETE CASCADE;

ALTER TABLE ONLY foliot.dead_messages
    ADD CONSTRAINT dead_messages_source_fkey FOREIGN KEY (source) REFERENCES foliot.sources(name) ON DELETE CASCADE;

ALTER TABLE ONLY foliot.job_dependencies
    ADD CONSTRAINT job_dependencies_job_id_fkey FOREIGN KEY (job_id) REFERENCES foliot.jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY foliot.job_dependencies
    ADD CONSTRAINT job_dependencies_keep_upstream FOREIGN KEY (upstream_id) REFERENCES foliot.jobs(id);

ALTER TABLE ONLY foliot.jobs
    ADD CONSTRAINT jobs_calendar_exists FOREIGN KEY (calendar) REFERENCES foliot.calendars(name);

ALTER TABLE ONLY foliot.sessions
    ADD CONSTRAINT sessions_token_id_fkey FOREIGN KEY (token_id) REFERENCES foliot.tokens(id);

ALTER TABLE ONLY foliot.source_places
    ADD CONSTRAINT source_places_source_fkey FOREIGN KEY (source) REFERENCES foliot.sources(name) ON DELETE CASCADE;
