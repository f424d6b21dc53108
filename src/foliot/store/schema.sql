-- Made by `make schema` from the migrations. Do not edit.

CREATE SCHEMA foliot;

CREATE FUNCTION foliot.due_bucket(at timestamp with time zone) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (floor((EXTRACT(epoch FROM at) / (4)::numeric)))::bigint;

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
    concurrency_key text,
    concurrency_limit bigint,
    rate_key text,
    rate_limit bigint,
    rate_seconds double precision,
    is_probe boolean,
    progress jsonb,
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

CREATE TABLE foliot.fair_keys (
    queue text NOT NULL,
    key text NOT NULL,
    rank bigint NOT NULL
)
WITH (fillfactor='50');

CREATE TABLE foliot.idempotency (
    key text NOT NULL,
    fingerprint text NOT NULL,
    answer jsonb NOT NULL,
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

CREATE TABLE foliot.tasks (
    name text NOT NULL,
    queue text NOT NULL,
    seen_at timestamp with time zone NOT NULL
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

ALTER TABLE ONLY foliot.fair_keys
    ADD CONSTRAINT fair_keys_pkey PRIMARY KEY (queue, key);

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

CREATE INDEX runs_expiring ON foliot.runs USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (state <> 'running'::text));

CREATE INDEX runs_gated ON foliot.runs USING btree (concurrency_key, rank) WHERE (concurrency_key IS NOT NULL);

CREATE INDEX runs_held ON foliot.runs USING btree (job_id) WHERE (state = 'held'::text);

CREATE INDEX runs_job ON foliot.runs USING btree (job_id, tick_at) WHERE (job_id IS NOT NULL);

CREATE INDEX runs_rated ON foliot.runs USING btree (rate_key, rank) WHERE ((rate_key IS NOT NULL) AND (state = 'held'::text));

CREATE INDEX runs_ready ON foliot.runs USING btree (queue, rank) WHERE (state = 'ready'::text);

CREATE INDEX runs_running ON foliot.runs USING btree (worker_id) WHERE (state = 'running'::text);

CREATE INDEX runs_scheduled ON foliot.runs USING btree (due_at) WHERE (state = 'scheduled'::text);

CREATE UNIQUE INDEX runs_unique ON foliot.runs USING btree (unique_key) WHERE (unique_key IS NOT NULL);

CREATE INDEX runs_waiting ON foliot.runs USING btree (id) WHERE (state = 'waiting'::text);

CREATE INDEX ticks_job ON ONLY foliot.ticks USING btree (job_id, tick_at);

ALTER TABLE ONLY foliot.jobs
    ADD CONSTRAINT jobs_calendar_exists FOREIGN KEY (calendar) REFERENCES foliot.calendars(name);
