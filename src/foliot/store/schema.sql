-- Made by `make schema` from the migrations. Do not edit.

CREATE SCHEMA foliot;

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
    CONSTRAINT attempts_outcome_is_known CHECK ((outcome = ANY (ARRAY['error'::text, 'timeout'::text, 'lost'::text])))
)
PARTITION BY RANGE (finished_at);

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
    CONSTRAINT history_state_is_terminal CHECK ((state = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text, 'skipped'::text])))
)
PARTITION BY RANGE (finished_at);

CREATE TABLE foliot.migrations (
    version bigint NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
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
    CONSTRAINT runs_running_has_a_worker CHECK (((state = 'running'::text) = (worker_id IS NOT NULL))),
    CONSTRAINT runs_state_is_live CHECK ((state = ANY (ARRAY['waiting'::text, 'scheduled'::text, 'held'::text, 'ready'::text, 'running'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_threshold='1000', autovacuum_vacuum_cost_delay='0', autovacuum_analyze_scale_factor='0.05');

CREATE TABLE foliot.tasks (
    name text NOT NULL,
    queue text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE foliot.workers (
    id uuid NOT NULL,
    name text NOT NULL,
    queues jsonb NOT NULL,
    tasks text[] NOT NULL,
    started_at timestamp with time zone NOT NULL,
    beat_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY foliot.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (version);

ALTER TABLE ONLY foliot.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY foliot.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (name);

ALTER TABLE ONLY foliot.workers
    ADD CONSTRAINT workers_pkey PRIMARY KEY (id);

CREATE INDEX attempts_run ON ONLY foliot.attempts USING btree (run_id, token);

CREATE INDEX history_id ON ONLY foliot.history USING btree (id);

CREATE INDEX runs_ready ON foliot.runs USING btree (queue, rank) WHERE (state = 'ready'::text);

CREATE INDEX runs_running ON foliot.runs USING btree (worker_id) WHERE (state = 'running'::text);

CREATE INDEX runs_scheduled ON foliot.runs USING btree (due_at) WHERE (state = 'scheduled'::text);
