-- What workers and operators need: limits, pauses, circuits, uniqueness, idempotency, reruns, dead letters, output while it runs.

-- Null for a plain run. A run with a concurrency or a rate key waits as `held` until its turn; `unique_key` is that of the one live run that
-- may have it; a `probe` may be claimed although the circuit of its task is open.
alter table foliot.runs
    add column expires_at timestamptz,
    add column rerun_of uuid,
    add column unique_key text,
    add column concurrency_key text,
    add column concurrency_limit bigint,
    add column rate_key text,
    add column rate_limit bigint,
    add column rate_seconds float8,
    add column is_probe boolean,
    add column progress jsonb;
create unique index runs_unique on foliot.runs (unique_key) where unique_key is not null;
create index runs_expiring on foliot.runs (expires_at) where expires_at is not null and state <> 'running';
create index runs_gated on foliot.runs (concurrency_key, rank) where concurrency_key is not null;
create index runs_rated on foliot.runs (rate_key, rank) where rate_key is not null and state = 'held';

-- `fingerprint`: equal for failures of the same kind. `rerun_as`: the run that was last made to take the place of this one.
alter table foliot.history
    add column rerun_of uuid,
    add column rerun_as uuid,
    add column fingerprint text;
-- Failed runs are few, and asked for in two orders: as dead letters by when they failed, among all runs by id.
create index history_dead on foliot.history (finished_at, id) where state = 'failed';
create index history_failed on foliot.history (id) where state = 'failed';
create index runs_waiting on foliot.runs (id) where state = 'waiting';

-- Live and finished runs side by side, as lists show them.
create view foliot.all_runs as
select id, true as is_live, name, task, queue, state, null::text as reason, priority, attempt, worker_id, job_id, tick_at, rerun_of,
    null::uuid as rerun_as, null::jsonb as error, due_at, created_at, started_at, null::timestamptz as finished_at
from foliot.runs
union all
select id, false, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of,
    rerun_as, error, due_at, created_at, started_at, finished_at
from foliot.history;

alter table foliot.attempts
    drop constraint attempts_outcome_is_known,
    add constraint attempts_outcome_is_known check (outcome in ('error', 'timeout', 'lost', 'snoozed'));

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

-- How far each key of a queue has got, in ranks: the next run of a key goes behind its last, but not behind everybody else's.
create table foliot.fair_keys (
    queue text not null,
    key text not null,
    rank bigint not null,
    primary key (queue, key)
) with (fillfactor = 50);

-- Requests that were answered: a repeated one gets the same answer.
create table foliot.idempotency (
    key text primary key,
    fingerprint text not null,
    answer jsonb not null,
    expires_at timestamptz not null
);
create index idempotency_expiring on foliot.idempotency (expires_at);

-- Output of attempts while they run; one partition a day. `part` is where the chunk begins in all that the attempt has written, in bytes.
create table foliot.logs (
    run_id uuid not null,
    token bigint not null,
    part bigint not null,
    written_at timestamptz not null,
    chunk bytea not null
) partition by range (written_at);
create index logs_run on foliot.logs (run_id, token, part);
