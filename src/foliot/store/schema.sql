-- Made by `make schema` from the migrations. Do not edit.

CREATE SCHEMA foliot;

CREATE FUNCTION foliot.due_bucket(at timestamp with time zone) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (floor((EXTRACT(epoch FROM at) / (4)::numeric)))::bigint;

CREATE FUNCTION foliot.submit(job jsonb) RETURNS uuid
    LANGUAGE plpgsql
    AS $_$
declare
    option_names constant text[] := array[
        'retries', 'timeout_seconds', 'backoff', 'retry_on', 'never_on', 'max_snoozes', 'concurrency', 'rate', 'fairness_key', 'guarantee'
    ];
    known constant text[] := option_names || array[
        'task', 'payload', 'name', 'queue', 'priority', 'delay_seconds', 'schedule_time', 'expires_at', 'unique', 'aging_seconds'
    ];
    at constant timestamptz := clock_timestamp();
    run_id uuid := encode(set_bit(set_bit(overlay(
        uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6
    ), 52, 1), 53, 1), 'hex')::uuid;
    asked record;
    declared_queue text;
    due timestamptz;
    given_options jsonb;
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
    select queue into declared_queue from foliot.tasks where tasks.name = asked.task;
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
    due := greatest(at, coalesce(asked.schedule_time, at + asked.delay_seconds * interval '1 second', at));
    given_options := (select jsonb_object_agg(key, value) from jsonb_each(job) where key = any (option_names) and value <> 'null');
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
                state = case when r.state in ('waiting', 'held') then r.state when due > at then 'scheduled' else 'ready' end
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
$_$;

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
    CONSTRAINT history_state_is_terminal CHECK ((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'skipped'::text])))
)
PARTITION BY RANGE (finished_at);

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
    concurrency_key text GENERATED ALWAYS AS ((options #>> '{concurrency,key}'::text[])) STORED,
    rate_key text GENERATED ALWAYS AS ((options #>> '{rate,key}'::text[])) STORED,
    fairness_key text GENERATED ALWAYS AS ((options ->> 'fairness_key'::text)) STORED,
    held_by text,
    is_probe boolean,
    progress jsonb,
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
    NULL::timestamp with time zone AS finished_at
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
    history.finished_at
   FROM foliot.history;

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
    CONSTRAINT attempts_outcome_is_known CHECK ((outcome = ANY (ARRAY['error'::text, 'timeout'::text, 'lost'::text, 'snoozed'::text])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE foliot.calendars (
    name text NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    days jsonb NOT NULL
);

CREATE TABLE foliot.circuits (
    task text NOT NULL,
    failures bigint NOT NULL,
    open_until timestamp with time zone,
    probe_id uuid,
    updated_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE foliot.idempotency (
    key text NOT NULL,
    fingerprint text NOT NULL,
    answer json NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.job_versions (
    job_id uuid NOT NULL,
    version bigint NOT NULL,
    made_at timestamp with time zone NOT NULL,
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
    name text NOT NULL,
    task text NOT NULL,
    queue text NOT NULL,
    paused_reason text,
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

CREATE TABLE foliot.logs (
    run_id uuid NOT NULL,
    token bigint NOT NULL,
    part bigint NOT NULL,
    written_at timestamp with time zone NOT NULL,
    chunk bytea NOT NULL
)
PARTITION BY RANGE (written_at);

CREATE TABLE foliot.migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

CREATE TABLE foliot.pauses (
    kind text NOT NULL,
    name text NOT NULL,
    paused_at timestamp with time zone NOT NULL,
    until_at timestamp with time zone,
    reason text,
    actor text,
    CONSTRAINT pauses_kind_is_known CHECK ((kind = ANY (ARRAY['queue'::text, 'task'::text, 'everything'::text])))
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

CREATE TABLE foliot.schedulers (
    id uuid NOT NULL,
    name text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE foliot.shards (
    id bigint NOT NULL,
    owner_id uuid,
    epoch bigint DEFAULT 0 NOT NULL,
    expires_at timestamp with time zone,
    zones text
)
WITH (fillfactor='50');

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
    guarantee text
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

CREATE TABLE foliot.workers (
    id uuid NOT NULL,
    name text NOT NULL,
    queues jsonb NOT NULL,
    tasks text[] NOT NULL,
    started_at timestamp with time zone NOT NULL,
    beat_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    labels jsonb DEFAULT '{}'::jsonb NOT NULL,
    draining_at timestamp with time zone
)
WITH (fillfactor='50');

ALTER TABLE ONLY foliot.calendars
    ADD CONSTRAINT calendars_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.circuits
    ADD CONSTRAINT circuits_pkey PRIMARY KEY (task);

ALTER TABLE ONLY foliot.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (key);

ALTER TABLE ONLY foliot.job_versions
    ADD CONSTRAINT job_versions_pkey PRIMARY KEY (job_id, version);

ALTER TABLE ONLY foliot.jobs
    ADD CONSTRAINT jobs_name_is_unique UNIQUE (name);

ALTER TABLE ONLY foliot.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY foliot.pauses
    ADD CONSTRAINT pauses_pkey PRIMARY KEY (kind, name);

ALTER TABLE ONLY foliot.queues
    ADD CONSTRAINT queues_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.schedulers
    ADD CONSTRAINT schedulers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.shards
    ADD CONSTRAINT shards_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.tallies
    ADD CONSTRAINT tallies_pkey PRIMARY KEY (slot, name);

ALTER TABLE ONLY foliot.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

CREATE INDEX attempts_run ON ONLY foliot.attempts USING btree (run_id, token);

CREATE INDEX history_dead ON ONLY foliot.history USING btree (finished_at, id) WHERE (state = 'failed'::text);

CREATE INDEX history_failed ON ONLY foliot.history USING btree (id) WHERE (state = 'failed'::text);

CREATE INDEX history_id ON ONLY foliot.history USING btree (id);

CREATE INDEX history_job ON ONLY foliot.history USING btree (job_id, tick_at) WHERE (job_id IS NOT NULL);

CREATE INDEX idempotency_expiring ON foliot.idempotency USING btree (expires_at);

CREATE INDEX jobs_calendar ON foliot.jobs USING btree (calendar, calendar_version) WHERE (calendar IS NOT NULL);

CREATE INDEX jobs_due ON foliot.jobs USING btree (shard, due_bucket) WHERE (due_bucket IS NOT NULL);

CREATE INDEX jobs_resuming ON foliot.jobs USING btree (paused_until) WHERE (paused_until IS NOT NULL);

CREATE INDEX logs_run ON ONLY foliot.logs USING btree (run_id, token, part);

CREATE INDEX rate_starts_key ON foliot.rate_starts USING btree (rate_key, started_at);

CREATE INDEX runs_cancelled ON foliot.runs USING btree (id) WHERE (cancel IS NOT NULL);

CREATE INDEX runs_expiring ON foliot.runs USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (state <> 'running'::text) AND (started_at IS NULL));

CREATE INDEX runs_held ON foliot.runs USING btree (job_id) WHERE (state = 'held'::text);

CREATE INDEX runs_in_turn ON foliot.runs USING btree (queue, fairness_key, rank) WHERE ((fairness_key IS NOT NULL) AND (state = 'ready'::text));

CREATE INDEX runs_job ON foliot.runs USING btree (job_id, tick_at) WHERE (job_id IS NOT NULL);

CREATE INDEX runs_of_key ON foliot.runs USING btree (concurrency_key) WHERE ((concurrency_key IS NOT NULL) AND (state = ANY (ARRAY['ready'::text, 'running'::text])));

CREATE INDEX runs_ready ON foliot.runs USING btree (queue, rank) WHERE (state = 'ready'::text);

CREATE INDEX runs_running ON foliot.runs USING btree (worker_id) WHERE (state = 'running'::text);

CREATE INDEX runs_scheduled ON foliot.runs USING btree (due_at) WHERE (state = 'scheduled'::text);

CREATE UNIQUE INDEX runs_unique ON foliot.runs USING btree (unique_key) WHERE (unique_key IS NOT NULL);

CREATE INDEX runs_waiting ON foliot.runs USING btree (id) WHERE (state = 'waiting'::text);

CREATE INDEX runs_waiting_for_key ON foliot.runs USING btree (concurrency_key, rank) WHERE (held_by = 'limit'::text);

CREATE INDEX runs_waiting_for_rate ON foliot.runs USING btree (rate_key, rank) WHERE (held_by = 'limit'::text);

CREATE INDEX ticks_job ON ONLY foliot.ticks USING btree (job_id, tick_at);

ALTER TABLE ONLY foliot.jobs
    ADD CONSTRAINT jobs_calendar_exists FOREIGN KEY (calendar) REFERENCES foliot.calendars(name);
