-- What workers and operators need: limits, pauses, circuits, uniqueness, idempotency, reruns, dead letters, output while it runs.

-- Null for a plain run. What a job says of limits is in its options; the columns are made of them, so that they can't disagree. `held_by`
-- says what a held run waits for. `unique_key` is that of the one live run that may have it. A probe may be claimed although the circuit of
-- its task is open.
alter table foliot.runs
    add column expires_at timestamptz,
    add column rerun_of uuid,
    add column unique_key text,
    add column concurrency_key text generated always as (options #>> '{concurrency,key}') stored,
    add column rate_key text generated always as (options #>> '{rate,key}') stored,
    add column fairness_key text generated always as (options ->> 'fairness_key') stored,
    add column held_by text,
    add column is_probe boolean,
    add column progress jsonb;
update foliot.runs set held_by = 'overlap' where state = 'held';
alter table foliot.runs add constraint runs_held_for_a_reason check ((state = 'held') = (held_by is not null));
create unique index runs_unique on foliot.runs (unique_key) where unique_key is not null;
create index runs_expiring on foliot.runs (expires_at) where expires_at is not null and state <> 'running';
create index runs_of_key on foliot.runs (concurrency_key) where concurrency_key is not null and state in ('ready', 'running');
create index runs_waiting_for_key on foliot.runs (concurrency_key, rank) where held_by = 'limit';
create index runs_in_turn on foliot.runs (queue, fairness_key, rank) where fairness_key is not null and state = 'ready';
create index runs_waiting_for_rate on foliot.runs (rate_key, rank) where held_by = 'limit';

-- `fingerprint`: equal for failures of the same kind.
alter table foliot.history
    add column rerun_of uuid,
    add column fingerprint text;
create index history_dead on foliot.history (finished_at, id) where state = 'failed';

alter table foliot.attempts
    drop constraint attempts_outcome_is_known,
    add constraint attempts_outcome_is_known check (outcome in ('error', 'timeout', 'lost', 'snoozed'));

-- What a task promises of itself, for the reaper: at_most_once is not repeated when its worker is lost.
alter table foliot.tasks add column guarantee text;

-- Labels, and whether it is to take nothing more.
alter table foliot.workers
    add column labels jsonb not null default '{}',
    add column draining_at timestamptz;

-- Nothing of a paused queue or task, or of all, is claimed.
create table foliot.pauses (
    kind text not null,
    name text not null,
    paused_at timestamptz not null,
    until_at timestamptz,
    reason text,
    actor text,
    primary key (kind, name),
    constraint pauses_kind_is_known check (kind in ('queue', 'task', 'everything'))
);

-- What a queue is limited to; a queue without a row has no limits.
create table foliot.queues (
    name text primary key,
    max_running bigint,
    max_depth bigint,
    updated_at timestamptz not null
);

-- Failures in a row of a task. Open until an instant; then one probe decides.
create table foliot.circuits (
    task text primary key,
    failures bigint not null,
    open_until timestamptz,
    probe_id uuid,
    updated_at timestamptz not null
) with (fillfactor = 50);

-- When runs of a rate key started, as far back as its period.
create table foliot.rate_starts (
    rate_key text not null,
    started_at timestamptz not null
);
create index rate_starts_key on foliot.rate_starts (rate_key, started_at);

-- Requests that were answered: a repeated one gets the same answer.
create table foliot.idempotency (
    key text primary key,
    fingerprint text not null,
    answer jsonb not null,
    expires_at timestamptz not null
);
create index idempotency_expiring on foliot.idempotency (expires_at);

-- Output of attempts while they run; one partition a day.
create table foliot.logs (
    run_id uuid not null,
    token bigint not null,
    part bigint not null,
    written_at timestamptz not null,
    chunk bytea not null
) partition by range (written_at);
create index logs_run on foliot.logs (run_id, token, part);
