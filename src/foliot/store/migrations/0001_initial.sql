-- Runs, history, earlier attempts, workers and the tasks they know.

-- Live runs only, so that the table and its indexes stay small however long the history grows.
create table foliot.runs (
    id uuid primary key,
    created_at timestamptz not null,
    due_at timestamptz not null,
    started_at timestamptz,
    rank bigint not null,
    token bigint not null default 0,
    attempt bigint not null default 0,
    lost bigint not null default 0,
    priority bigint not null default 0,
    worker_id uuid,
    state text not null,
    queue text not null,
    task text not null,
    name text,
    payload jsonb,
    options jsonb,
    constraint runs_state_is_live check (state in ('waiting', 'scheduled', 'held', 'ready', 'running')),
    constraint runs_running_has_a_worker check ((state = 'running') = (worker_id is not null))
) with (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05
);
create index runs_ready on foliot.runs (queue, rank) where state = 'ready';
create index runs_scheduled on foliot.runs (due_at) where state = 'scheduled';
create index runs_running on foliot.runs (worker_id) where state = 'running';

-- Finished runs, one partition a day of finishing (UTC); retention drops whole days.
create table foliot.history (
    id uuid not null,
    created_at timestamptz not null,
    due_at timestamptz not null,
    started_at timestamptz,
    finished_at timestamptz not null,
    token bigint not null,
    attempt bigint not null,
    lost bigint not null,
    priority bigint not null,
    worker_id uuid,
    state text not null,
    queue text not null,
    task text not null,
    name text,
    reason text,
    payload jsonb,
    options jsonb,
    -- json, not jsonb: a result is kept as it was given, and can hold what jsonb refuses
    result json,
    error jsonb,
    output bytea,
    constraint history_state_is_terminal check (state in ('succeeded', 'failed', 'cancelled', 'skipped'))
) partition by range (finished_at);
create index history_id on foliot.history (id);

-- Attempts before the last one; the last one is on the run itself.
create table foliot.attempts (
    run_id uuid not null,
    token bigint not null,
    attempt bigint not null,
    worker_id uuid not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    outcome text not null,
    error jsonb,
    output bytea,
    constraint attempts_outcome_is_known check (outcome in ('error', 'timeout', 'lost'))
) partition by range (finished_at);
create index attempts_run on foliot.attempts (run_id, token);

-- One row a worker process; its lease covers all the attempts it runs.
create table foliot.workers (
    id uuid primary key,
    name text not null,
    queues jsonb not null,
    tasks text[] not null,
    started_at timestamptz not null,
    beat_at timestamptz not null,
    expires_at timestamptz not null
) with (fillfactor = 50);

-- Every task that a worker has ever announced, with the queue it declares.
create table foliot.tasks (
    name text primary key,
    queue text not null,
    seen_at timestamptz not null
);
