-- The whole schema, grouped by subject. The functions and triggers are in store/functions/, one file each.
--
-- Names that belong to a namespace are stored as `namespace/name`, and without a prefix in the namespace `default`
-- (see model/namespace.py). Tables of one partition a day are pruned by dropping whole days; store/partitions.py
-- creates the days ahead.

-- ---------------------------------------------------------------------------------------------------------------------
-- Runs
-- ---------------------------------------------------------------------------------------------------------------------

-- Live runs only, so that the table and its indexes stay small however long the history grows.
create table foliot.runs (
    id uuid primary key,
    created_at timestamptz not null,
    due_at timestamptz not null,
    started_at timestamptz,
    -- The order of claims: the due instant in microseconds, minus the priority times the aging (see model/priority.py).
    rank bigint not null,
    -- Each claim raises the token. A write with an older token matches nothing.
    token bigint not null default 0,
    attempt bigint not null default 0,
    -- How many attempts ended because their worker was lost.
    lost bigint not null default 0,
    priority bigint not null default 0,
    worker_id uuid,
    state text not null,
    queue text not null,
    task text not null,
    name text,
    payload jsonb,
    -- Retries, timeout, limits, tags, notifications: null for a plain run. Indexes on expressions find the keys in it;
    -- stored generated columns would cost a third of a claim, because PostgreSQL evaluates them at every update.
    options jsonb,
    -- The job and the tick that the run came from.
    job_id uuid,
    tick_at timestamptz,
    -- A requested cancellation: {reason, message, is_forced}. The worker that holds the run ends it; the scheduler ends
    -- a run that no worker holds.
    cancel jsonb,
    expires_at timestamptz,
    rerun_of uuid,
    -- At most one live run has a given unique key.
    unique_key text,
    -- Why a run is held: overlap, limit, signal, condition, pause, circuit or no_worker.
    held_by text,
    -- A probe may be claimed although the circuit of its task is open.
    is_probe boolean,
    progress jsonb,
    -- The workflow or map that the run is a step or an item of.
    parent_id uuid,
    step text,
    -- The runs that it waits for or waited for. `has_dependents`: other runs wait for this one.
    upstream uuid[],
    has_dependents boolean,
    -- Counts of its upstreams, with the rule that decides on them. `unmet` is null for a run that waits for its
    -- children.
    rule text,
    unmet bigint,
    met_succeeded bigint,
    met_failed bigint,
    met_skipped bigint,
    -- The upstream whose failure is passed on.
    blame text,
    -- How long the run waits after its upstreams have ended.
    delay_seconds double precision,
    signal jsonb,
    -- The rank with which the gatekeeper last looked at the run. A run that has just begun to wait for a limit, or that
    -- was replaced, retried or ranked again, has another rank, so no statement has to reset this column.
    seen_rank bigint,
    -- Of a run that gave up its slot in the middle of its function: what it waits for (see model/checkpoint.py). Null
    -- as soon as it may go on.
    awaits jsonb,
    constraint runs_state_is_live check (state in ('waiting', 'scheduled', 'held', 'ready', 'running')),
    constraint runs_running_has_a_worker check ((state = 'running') = (worker_id is not null)),
    constraint runs_held_for_a_reason check ((state = 'held') = (held_by is not null))
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
create index runs_job on foliot.runs (job_id, tick_at) where job_id is not null;
create index runs_cancelled on foliot.runs (id) where cancel is not null;
create unique index runs_unique on foliot.runs (unique_key) where unique_key is not null;
create index runs_expiring on foliot.runs (expires_at)
    where expires_at is not null and state <> 'running' and started_at is null;
create index runs_children on foliot.runs (parent_id) where parent_id is not null;
-- Waiting runs that are not steps; steps are found through their parents.
create index runs_waiting on foliot.runs (id) where state = 'waiting' and parent_id is null;
-- Only runs with tags are in the index. A search for a tag walks along it, page by page.
create index runs_tagged on foliot.runs (id) where options ? 'tags';

-- Held runs, by what they wait for.
create index runs_held on foliot.runs (job_id) where state = 'held';
create index runs_overlapping on foliot.runs (job_id) where held_by = 'overlap';
create index runs_awaiting_signal on foliot.runs (due_at) where held_by = 'signal';
create index runs_approvals on foliot.runs (id) where held_by = 'signal';
create index runs_conditional on foliot.runs (id) where held_by = 'condition';
-- Long lines of runs that no worker may start are held apart from the ready ones; short ones stay ready.
create index runs_parked on foliot.runs (queue, task, rank) where held_by in ('pause', 'circuit', 'no_worker');
create index runs_in_turn on foliot.runs (queue, (options ->> 'fairness_key'), rank)
    where (options ->> 'fairness_key') is not null and state = 'ready';

-- Runs with limits. Both keys are in two of the indexes, so that the runs which one limit lets pass are found however
-- many the other limit holds back.
create index runs_arrived on foliot.runs (rank) where held_by = 'limit' and seen_rank is distinct from rank;
create index runs_of_key on foliot.runs ((options #>> '{concurrency,key}'))
    where (options #>> '{concurrency,key}') is not null and state in ('ready', 'running');
create index runs_waiting_for_key on foliot.runs ((options #>> '{concurrency,key}'), rank)
    where held_by = 'limit' and options #>> '{concurrency,key}' is not null;
create index runs_waiting_for_rate on foliot.runs ((options #>> '{rate,key}'), rank)
    where held_by = 'limit' and options #>> '{rate,key}' is not null;
create index runs_of_key_by_rate on foliot.runs ((options #>> '{concurrency,key}'), (options #>> '{rate,key}'), rank)
    where held_by = 'limit' and options #>> '{concurrency,key}' is not null;
create index runs_of_rate_by_key on foliot.runs ((options #>> '{rate,key}'), (options #>> '{concurrency,key}'), rank)
    where held_by = 'limit' and options #>> '{rate,key}' is not null;
create index runs_at_limit on foliot.runs ((options #>> '{concurrency,key}'), rank)
    where held_by = 'limit' and (options #>> '{concurrency,at_limit}') in ('drop_new', 'cancel_old');

-- Finished runs, one partition a day of finishing (UTC).
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
    -- json, not jsonb: a result is kept as the task returned it, and can hold text that jsonb refuses.
    result json,
    error jsonb,
    output bytea,
    job_id uuid,
    tick_at timestamptz,
    rerun_of uuid,
    -- The latest run that replaced this one.
    rerun_as uuid,
    -- Equal for failures of the same kind.
    fingerprint text,
    parent_id uuid,
    step text,
    upstream uuid[],
    has_dependents boolean,
    constraint history_state_is_terminal check (state in ('succeeded', 'failed', 'cancelled', 'skipped'))
) partition by range (finished_at);
create index history_id on foliot.history (id);
create index history_job on foliot.history (job_id, tick_at) where job_id is not null;
create index history_children on foliot.history (parent_id) where parent_id is not null;
-- Failed runs are few, and are listed in two orders: dead letters by when they failed, and all runs by id.
create index history_dead on foliot.history (finished_at, id) where state = 'failed';
create index history_failed on foliot.history (id) where state = 'failed';
create index history_tagged on foliot.history (id) where options ? 'tags';
-- For the event feed. History grows at its end in the order of finishing, so BRIN is small, and costs inserts nothing.
create index history_finished on foliot.history
    using brin (finished_at) with (pages_per_range = 32, autosummarize = on);

-- Notes of people about failures of one kind, and the instant up to which they dismissed them. Later failures are listed
-- again.
create table foliot.dead_groups (
    namespace text not null,
    fingerprint text not null,
    note text,
    noted_by text,
    noted_at timestamptz,
    dismissed_until timestamptz,
    dismissed_by text,
    primary key (namespace, fingerprint)
);

-- Replays of dead letters that begin with one run, the canary. The others follow once it has succeeded.
create table foliot.replays (
    id uuid primary key,
    namespace text not null,
    -- The group of the canary.
    fingerprint text not null,
    actor text not null,
    created_at timestamptz not null,
    state text not null default 'waiting',
    -- Why it stopped.
    reason text,
    -- When the canary had succeeded.
    released_at timestamptz,
    finished_at timestamptz,
    -- The dead letters in order, and the ids of their new runs. Assigned once, so that each step can be repeated.
    old_ids uuid[] not null,
    new_ids uuid[] not null,
    total bigint not null,
    -- How many of them have been dealt with, and how many became runs: others had been replayed in the meantime.
    released bigint not null default 1,
    started bigint not null default 1,
    payload jsonb,
    apart_seconds double precision not null,
    keeps_checkpoints boolean not null,
    is_repeated boolean not null,
    constraint replays_state_is_known check (state in ('waiting', 'releasing', 'done', 'stopped'))
);
-- One at a time for each group.
create unique index replays_open on foliot.replays (namespace, fingerprint) where state in ('waiting', 'releasing');
create index replays_of_namespace on foliot.replays (namespace, id);

-- Live and finished runs side by side, as lists show them.
create view foliot.all_runs as
select
    id, true as is_live, name, task, queue, state, null::text as reason, priority, attempt, worker_id, job_id, tick_at,
    rerun_of, null::uuid as rerun_as, null::jsonb as error, due_at, created_at, started_at,
    null::timestamptz as finished_at, parent_id, step, options -> 'tags' as tags, options ? 'tags' as is_tagged, payload
from foliot.runs
union all
select
    id, false, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at,
    rerun_of, rerun_as, error, due_at, created_at, started_at,
    finished_at, parent_id, step, options -> 'tags', options ? 'tags', payload
from foliot.history;

-- Attempts before the last one, one partition a day; the last attempt is on the run itself.
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
    -- When the worker of a lost attempt reported an outcome after all, which was refused.
    refused_at timestamptz,
    constraint attempts_outcome_is_known check (outcome in ('error', 'timeout', 'lost', 'snoozed', 'suspended'))
) partition by range (finished_at);
create index attempts_run on foliot.attempts (run_id, token);
-- For the archive, which reads a day in the order of finishing.
create index attempts_finished on foliot.attempts
    using brin (finished_at) with (pages_per_range = 32, autosummarize = on);

-- Output of attempts while they run, one partition a day.
create table foliot.logs (
    run_id uuid not null,
    token bigint not null,
    -- Where the chunk begins in the whole output of the attempt, in bytes.
    part bigint not null,
    written_at timestamptz not null,
    chunk bytea not null
) partition by range (written_at);
create index logs_run on foliot.logs (run_id, token, part);

-- Answers to requests with an idempotency key: a repeated request gets the same answer.
create table foliot.idempotency (
    key text primary key,
    fingerprint text not null,
    -- json, not jsonb: the answer is repeated byte for byte.
    answer json not null,
    expires_at timestamptz not null
);
create index idempotency_expiring on foliot.idempotency (expires_at);

-- ---------------------------------------------------------------------------------------------------------------------
-- Workers and tasks
-- ---------------------------------------------------------------------------------------------------------------------

-- The tasks of each app as its workers announce them: `{task: {"schema": ..., "description": ...}}`. Workers of the
-- same code share a row.
create table foliot.announcements (
    hash text primary key,
    -- json and not jsonb, which would lose the order of the parameters.
    tasks json not null,
    announced_at timestamptz not null
);

-- One row a worker process; its lease covers all the attempts that it runs.
create table foliot.workers (
    id uuid primary key,
    name text not null,
    queues jsonb not null,
    tasks text[] not null,
    started_at timestamptz not null,
    beat_at timestamptz not null,
    expires_at timestamptz not null,
    labels jsonb not null default '{}',
    -- Since when the worker claims nothing more.
    draining_at timestamptz,
    -- Functions that still run although their attempts have ended; each occupies a slot.
    left_running bigint not null default 0,
    announcement text,
    -- The token of a worker that works through the API: no other token may speak for it.
    token_id text,
    -- The entry in etcd or ZooKeeper that keeps this worker alive. Without it the lease ends early, but not before the
    -- one that the worker had before, and not sooner than the worker trusts an entry.
    session_id uuid,
    session_seconds double precision,
    session_free_at timestamptz
) with (fillfactor = 50);

-- Workers that have left or died lately, and the attempts that were lost with them.
create table foliot.gone_workers (
    id uuid primary key,
    name text,
    queues jsonb,
    labels jsonb,
    started_at timestamptz,
    gone_at timestamptz not null,
    -- Its lease expired; otherwise it shut down.
    is_dead boolean not null,
    lost bigint not null default 0,
    -- The first hundred.
    lost_runs uuid[] not null default '{}'
);
create index gone_workers_at on foliot.gone_workers (gone_at, id);

-- Every task that a worker has ever announced, with what the task declares about itself.
create table foliot.tasks (
    name text primary key,
    queue text not null,
    seen_at timestamptz not null,
    -- The reaper does not repeat an at_most_once task whose worker is lost.
    guarantee text,
    -- Tags for jobs that name none: a list, or null.
    tags jsonb,
    -- The latest announcement of the task.
    announcement text
);

-- Built-in tasks that are disabled in a namespace, or with the namespace `*` in all of them.
create table foliot.disabled_tasks (
    namespace text not null,
    task text not null,
    disabled_at timestamptz not null,
    disabled_by text not null,
    reason text,
    -- Disabled with a token for all namespaces; only such a token can enable the task again.
    is_imposed boolean not null,
    primary key (namespace, task)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- Recurring jobs and the scheduler
-- ---------------------------------------------------------------------------------------------------------------------

-- Days on which jobs do not fire.
create table foliot.calendars (
    name text primary key,
    version bigint not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    days jsonb not null
);

-- The four seconds that an instant falls into. A generated column depends on this function, so it is part of the table
-- and not of store/functions/: it could not change without a rewrite of the column.
create function foliot.due_bucket(at timestamptz) returns bigint language sql immutable strict parallel safe
return floor(extract(epoch from at) / 4)::bigint;

-- A recurring job, with the cursor of its schedule.
create table foliot.jobs (
    id uuid primary key,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    -- The first tick that has not been dealt with.
    next_at timestamptz,
    -- That tick plus its jitter; null while there is nothing to wait for (paused, or no further tick).
    fire_at timestamptz,
    paused_at timestamptz,
    paused_until timestamptz,
    shard bigint not null,
    version bigint not null default 1,
    priority bigint not null,
    runs_left bigint,
    -- Compared by bytes in every locale, so that the jobs of a namespace are adjacent in the index of names: nothing
    -- else sorts between `team/` and `team0`. An index of its own would cost every tick.
    name text collate "C" not null,
    task text not null,
    queue text not null,
    paused_reason text,
    paused_by text,
    schedule jsonb not null,
    payload jsonb,
    options jsonb,
    calendar text generated always as (schedule ->> 'calendar') stored,
    -- The version of the calendar under which `next_at` was computed, if it depends on it.
    calendar_version bigint,
    -- The offset of the job's zone at `next_at`, in seconds, when that was computed: another node may know other rules.
    utc_offset bigint,
    -- Due jobs are found by the four seconds they fall into. A job that fires every second then changes an indexed
    -- column only every fourth time; in between, its row is updated in place and no index is touched.
    due_bucket bigint generated always as (foliot.due_bucket(fire_at)) stored,
    constraint jobs_name_is_unique unique (name),
    constraint jobs_fire_with_their_tick check ((fire_at is null) or (next_at is not null)),
    constraint jobs_paused_do_not_fire check (paused_at is null or fire_at is null),
    constraint jobs_calendar_exists foreign key (calendar) references foliot.calendars (name)
) with (fillfactor = 70);
create index jobs_due on foliot.jobs (shard, due_bucket) where due_bucket is not null;
create index jobs_resuming on foliot.jobs (paused_until) where paused_until is not null;
create index jobs_calendar on foliot.jobs (calendar, calendar_version) where calendar is not null;
create index jobs_calendar_names on foliot.jobs (calendar, name) where calendar is not null;
create index jobs_tagged on foliot.jobs (name) where options ? 'tags';
create index jobs_paused on foliot.jobs (name) where paused_at is not null;
-- Its condition names no other column than the index of due jobs, so that a tick costs no more.
create index jobs_over on foliot.jobs (name) where due_bucket is null and paused_at is null;

-- The latest versions of a job's definition, each written in the transaction that makes it current. The versions of a
-- deleted job stay for as long as history does.
create table foliot.job_versions (
    job_id uuid not null,
    version bigint not null,
    made_at timestamptz not null,
    -- If set, the job was deleted then, when this version was current.
    deleted_at timestamptz,
    -- How many runs the job had left when it was deleted.
    runs_left bigint,
    made_by text,
    deleted_by text,
    definition jsonb not null,
    primary key (job_id, version)
);
create index job_versions_deleted on foliot.job_versions ((definition ->> 'name'), deleted_at)
    where deleted_at is not null;
create index job_versions_forgotten on foliot.job_versions (deleted_at) where deleted_at is not null;

-- Ticks that did not become a run, each with its reason; one partition a day.
create table foliot.ticks (
    job_id uuid not null,
    tick_at timestamptz not null,
    -- If set, the row sums up all ticks from `tick_at` to this one.
    until_at timestamptz,
    noted_at timestamptz not null,
    reason text not null,
    blocked_by uuid,
    constraint ticks_reason_is_known check (reason in ('overlap', 'missed', 'superseded', 'paused', 'excluded'))
) partition by range (noted_at);
create index ticks_job on foliot.ticks (job_id, tick_at);
create index ticks_noted on foliot.ticks using brin (noted_at) with (pages_per_range = 32, autosummarize = on);

-- A slice of the jobs. One scheduler node owns it at a time, under an epoch that only grows.
create table foliot.shards (
    id bigint primary key,
    owner_id uuid,
    epoch bigint not null default 0,
    expires_at timestamptz,
    -- The fingerprint of the time zone rules with which the cursors of the shard were last checked.
    zones text
) with (fillfactor = 50);
insert into foliot.shards (id) select generate_series(0, 99);

-- One row a scheduler node.
create table foliot.schedulers (
    id uuid primary key,
    name text not null,
    started_at timestamptz not null,
    expires_at timestamptz not null,
    -- With the lease's end, this shows a clock that was set back.
    beat_at timestamptz
) with (fillfactor = 50);

-- ---------------------------------------------------------------------------------------------------------------------
-- Workflows, maps and dependencies
-- ---------------------------------------------------------------------------------------------------------------------
--
-- A run that waits for another is its *dependent*, the other its *upstream*: a row in `dependencies` while the upstream
-- lives, and counters on the dependent. A run made of other runs, a workflow of its steps or a map of its items, is
-- their *parent*: a row in `parents` with counters of its *children*.
--
-- Every statement that ends a run inserts it into `history`. The trigger `settle` on that insert does the rest in the
-- same transaction: it decrements counters, releases or skips dependents, creates the next items of a map and ends
-- parents. Dependents are therefore never stranded by two upstreams that end at once.
--
-- Locks are taken in one order to avoid deadlocks: first the running runs, by the statement that ends them; then the
-- roots, which are the outermost parents of the ended runs, by id; then everything else. A transaction that holds a
-- root never waits for a running run, and a transaction that ends other runs locks their roots before them.

create table foliot.dependencies (
    upstream_id uuid not null,
    run_id uuid not null,
    -- Of a run that a function called, and of its caller: what becomes of `run_id` when the upstream ends. Null: it is
    -- a dependent, and counts its upstreams.
    nudge text constraint dependencies_nudge_is_known check (nudge in ('wake', 'cancel'))
);
-- With `run_id`, a look for one pair costs the same however many runs wait for the upstream.
create index dependencies_of_run on foliot.dependencies (upstream_id, run_id);

create table foliot.parents (
    id uuid primary key,
    -- The outermost parent around it, or itself.
    root_id uuid not null,
    -- Its latest run.
    run_id uuid not null,
    kind text not null,
    created_at timestamptz not null,
    finished_at timestamptz,
    on_failure text not null,
    -- The cancellation that its children get once it stops.
    stop jsonb,
    blame text,
    total bigint not null,
    -- The first item of a map that has not become a run.
    next_index bigint not null,
    -- How many children may be live at a time.
    capacity bigint not null,
    unfinished bigint not null default 0,
    succeeded bigint not null default 0,
    failed bigint not null default 0,
    cancelled bigint not null default 0,
    skipped bigint not null default 0,
    template jsonb,
    items jsonb,
    constraint parents_kind_is_known check (kind in ('workflow', 'map')),
    constraint parents_on_failure_is_known check (on_failure in ('fail_fast', 'continue')),
    constraint parents_count_right check (unfinished >= 0 and next_index <= total)
) with (fillfactor = 50);
create unique index parents_run on foliot.parents (run_id);
create index parents_finished on foliot.parents (finished_at) where finished_at is not null;
create index parents_stopping on foliot.parents (id) where stop is not null and finished_at is null;

-- Items of a map that have not become runs yet, one row for each future run.
create table foliot.map_items (
    map_id uuid not null,
    place bigint not null,
    value jsonb not null,
    primary key (map_id, place)
);

-- An ended run, as the settling functions pass it on.
create type foliot.ending as (id uuid, state text, parent_id uuid, blame text, has_dependents boolean);

-- Jobs that depend on other jobs. A job with a schedule fires runs that wait for the latest upstream run due at or
-- before their own tick. A job without one (`fires`) is fired once each upstream has succeeded since it last fired.
create table foliot.job_dependencies (
    job_id uuid not null references foliot.jobs (id) on delete cascade,
    upstream_id uuid not null constraint job_dependencies_keep_upstream references foliot.jobs (id),
    fires boolean not null,
    -- Microseconds of rank for each step of priority, for the runs that the database itself creates.
    aging bigint not null,
    succeeded_at timestamptz,
    run_id uuid,
    primary key (job_id, upstream_id)
);
create index job_dependencies_upstream on foliot.job_dependencies (upstream_id);

-- Runs whose upstream run is not known yet: the upstream's cursor, perhaps in the shard of another node, has not passed
-- the tick. The function `link_runs` resolves them.
create table foliot.links (
    run_id uuid not null,
    upstream_id uuid not null,
    tick_at timestamptz not null,
    primary key (run_id, upstream_id)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- Durable functions
-- ---------------------------------------------------------------------------------------------------------------------
--
-- A function that runs again from the top asks for its steps by name, and gets the recorded ones from here. Only runs
-- that use it have rows. They stay as long as the run is in `history`.

create table foliot.checkpoints (
    run_id uuid not null,
    name text not null,
    kind text not null constraint checkpoints_kind_is_known
        check (kind in ('step', 'transaction', 'sleep', 'signal', 'call')),
    -- The qualified name of the step's function, or the task that was called.
    function text,
    -- The attempt that recorded it.
    token bigint not null,
    attempt bigint not null,
    -- How many attempts had been lost by then. Losses before the last record do not count towards the most allowed.
    lost bigint not null,
    started_at timestamptz not null,
    -- Null while the run waits for it.
    finished_at timestamptz,
    -- The end of a sleep, or the time limit of a wait for a signal.
    due_at timestamptz,
    child_id uuid,
    -- json, not jsonb: a result is kept as the function returned it.
    result json,
    error jsonb,
    -- The function ended without asking for it: it was renamed or removed in the code.
    is_unused boolean not null default false,
    primary key (run_id, name)
);
create index checkpoints_started on foliot.checkpoints (started_at);

-- Signals that were sent to a run by name. Each is kept for when its function waits for it.
create table foliot.signals (
    run_id uuid not null,
    name text not null,
    sent_at timestamptz not null,
    -- {payload, approved, message}; json, not jsonb, so that the payload arrives as it was sent.
    signal json not null,
    primary key (run_id, name)
);
create index signals_sent on foliot.signals (sent_at);

-- Runs to look at: one that they called has ended (`wake`), or the one that called them (`cancel`). Rows are only added
-- by the transactions that end runs, so that those never wait for the runs that are named here.
create table foliot.nudges (
    run_id uuid not null,
    nudge text not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- ---------------------------------------------------------------------------------------------------------------------
-- Pauses, limits and circuit breakers
-- ---------------------------------------------------------------------------------------------------------------------

-- No run of a paused queue or task is claimed, or no run at all.
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

-- The limits of a queue; a queue without a row has none.
create table foliot.queues (
    name text primary key,
    max_running bigint,
    max_depth bigint,
    updated_at timestamptz not null
);

-- Consecutive failures of a task. An open circuit lets nothing start until an instant; then one probe decides.
create table foliot.circuits (
    task text primary key,
    failures bigint not null,
    open_until timestamptz,
    probe_id uuid,
    updated_at timestamptz not null,
    -- When the probe was chosen: one that does not start soon makes way for another.
    probe_at timestamptz
) with (fillfactor = 50);

-- When runs of a rate key started, as far back as its period.
create table foliot.rate_starts (
    rate_key text not null,
    started_at timestamptz not null
);
create index rate_starts_key on foliot.rate_starts (rate_key, started_at);
-- Old starts are deleted in batches, oldest first.
create index rate_starts_old on foliot.rate_starts (started_at);

-- Keys that the gatekeeper must look at, and from when on: a run of the key has ended, or a start leaves the period of
-- its rate. Rows are only added, so transactions that free places of the same key never wait for each other. Only the
-- gatekeeper deletes them.
create table foliot.turns (
    kind text not null constraint turns_kind_is_known check (kind in ('concurrency', 'rate')),
    key text not null,
    look_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index turns_due on foliot.turns (look_at);
create index turns_of_rate on foliot.turns (key, look_at) where kind = 'rate';

-- ---------------------------------------------------------------------------------------------------------------------
-- Access
-- ---------------------------------------------------------------------------------------------------------------------

create table foliot.tokens (
    -- The part of the token that is no secret.
    id text primary key,
    name text not null,
    -- The SHA-256 of the whole token.
    hash bytea not null,
    role text not null,
    -- May be `*`, for all namespaces.
    namespace text not null,
    created_at timestamptz not null,
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    used_at timestamptz,
    -- Two namespaces may each have a token of the same name, so a name alone does not identify its creator.
    created_by_id text,
    constraint tokens_role_is_known check (role in ('viewer', 'submitter', 'operator', 'admin', 'worker'))
);
-- A name is free again once its token is revoked.
create unique index tokens_name_is_unique on foliot.tokens (namespace, name) where revoked_at is null;

-- Browsers that are signed in. The cookie holds a random id, and only its hash is stored. A session is worth as much as
-- its token is at the moment, so revoking the token ends it.
create table foliot.sessions (
    -- The SHA-256 of the id.
    hash bytea primary key,
    token_id text not null references foliot.tokens (id),
    created_at timestamptz not null,
    used_at timestamptz not null,
    expires_at timestamptz not null
);
create index sessions_expiring on foliot.sessions (expires_at);

-- Saved views of the web UI's lists.
create table foliot.views (
    namespace text not null,
    -- The scope and the name of a token, or '' for a view that the namespace shares.
    owner text not null,
    page text not null,
    name text not null,
    search text not null,
    updated_at timestamptz not null,
    updated_by text not null,
    primary key (namespace, owner, page, name)
);

-- Every requested change and every refusal, one partition a day. A trigger refuses updates and deletes.
create table foliot.audit (
    id uuid not null,
    at timestamptz not null,
    actor text not null,
    token_id text,
    role text,
    namespace text not null,
    address text,
    request_id text not null,
    method text not null,
    path text not null,
    action text not null,
    target text,
    status bigint not null,
    code text,
    -- The namespace of the actor's token; `namespace` is that of the request.
    actor_namespace text
) partition by range (at);
create index audit_at on foliot.audit (at, id);

-- ---------------------------------------------------------------------------------------------------------------------
-- Metrics and processes
-- ---------------------------------------------------------------------------------------------------------------------

-- Counts since the database was created, for /metrics, at a cost that does not grow with history. Processes add to them
-- about once a second, each in a slot of its own choice, so that they rarely wait for the same rows.
create table foliot.tallies (
    slot bigint not null,
    name text not null,
    value double precision not null,
    primary key (slot, name)
) with (fillfactor = 50);

-- Counts written inside other transactions. Rows are only added, so no transaction waits for another; the next process
-- that adds to the tallies collects them. After a crash the counts are too low, never too high.
create unlogged table foliot.counted (
    name text not null,
    value double precision not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- Endings of the jobs with series of their own on /metrics; a bounded number of rows.
create table foliot.job_series (
    job text primary key,
    succeeded bigint not null,
    failed bigint not null,
    cancelled bigint not null,
    skipped bigint not null,
    -- Durations of the last attempts: their sum, and one count for each bound of a histogram.
    seconds double precision not null,
    buckets bigint[] not null,
    succeeded_at timestamptz,
    ended_at timestamptz not null
) with (fillfactor = 50);

-- Sums of each minute and each hour, for charts. A scheduler node sums up the history once a minute, so neither
-- the statements that end runs nor a chart of a year read it.
create table foliot.rollups (
    -- The length in seconds: 60 or 3600.
    step bigint not null,
    at timestamptz not null,
    namespace text not null,
    -- Empty for the whole namespace. Only the busiest queues have rows of their own.
    queue text not null,
    succeeded bigint not null,
    failed bigint not null,
    cancelled bigint not null,
    skipped bigint not null,
    -- How many runs had waited how long when they started, by the bounds in model/histogram.py.
    waits bigint[] not null,
    -- The ready runs at the end of the minute, and the most of them in the hour.
    ready bigint not null,
    primary key (step, namespace, at, queue)
);
create index rollups_old on foliot.rollups (step, at);

-- The minutes and hours that are in the rollups, so that each is summed up once, and silence differs from absence.
create table foliot.recorded (
    step bigint not null,
    at timestamptz not null,
    primary key (step, at)
);

-- How far endings of runs have been sent to other systems, and which process does it.
create table foliot.exports (
    name text primary key,
    -- The last ending that was sent.
    at timestamptz not null,
    id uuid not null,
    owner uuid not null,
    expires_at timestamptz not null
);

-- Rules that turn messages of other systems into jobs, and the scheduler node that receives them. A row holds no secret,
-- only where it is.
create table foliot.sources (
    name text primary key,
    version bigint not null default 1,
    definition jsonb not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    owner uuid,
    expires_at timestamptz,
    received_at timestamptz,
    failing_since timestamptz,
    error text
);

-- Messages that could not become jobs. A message that is delivered again has one row.
create table foliot.dead_messages (
    id uuid primary key,
    source text not null references foliot.sources (name) on delete cascade,
    at timestamptz not null,
    message_id text not null,
    reason text not null,
    body bytea not null,
    headers jsonb not null,
    constraint dead_messages_are_unique unique (source, message_id)
);
create index dead_messages_of_source on foliot.dead_messages (source, id);

-- Where a source continues in each partition of its topic. It is stored with the jobs of the messages before it.
create table foliot.source_places (
    source text not null references foliot.sources (name) on delete cascade,
    partition text not null,
    next bigint not null,
    primary key (source, partition)
);

-- How far each kind of history is archived, and which process does it (see archive/archiver.py). A day of a kind that is
-- listed here is dropped only once it is archived.
create table foliot.archives (
    kind text primary key,
    location text not null,
    -- The last row that was archived.
    at timestamptz not null,
    id uuid not null,
    owner uuid not null,
    expires_at timestamptz not null,
    failing_since timestamptz,
    error text
);

-- The archived objects of days that are not complete. A complete day has its list of objects in the archive.
create table foliot.archived_objects (
    kind text not null,
    day date not null,
    name text not null,
    namespace text not null,
    rows bigint not null,
    bytes bigint not null,
    sha256 text not null,
    first_id uuid not null,
    last_id uuid not null,
    primary key (kind, day, name)
);

-- The days that the archive has confirmed. The ids lead from a run to the days on which it may have ended.
create table foliot.archived_days (
    kind text not null,
    day date not null,
    namespace text not null,
    rows bigint not null,
    objects bigint not null,
    first_id uuid not null,
    last_id uuid not null,
    location text not null,
    primary key (kind, day, namespace)
);

-- ---------------------------------------------------------------------------------------------------------------------
-- Alerts
-- ---------------------------------------------------------------------------------------------------------------------

-- The conditions that scheduler nodes check, as users put them (see model/alert_rule.py).
create table foliot.alert_rules (
    name text primary key,
    version bigint not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    updated_by text not null,
    -- The heartbeat that the rule waits for.
    heartbeat text,
    rule jsonb not null
);
create index alert_rules_heartbeat on foliot.alert_rules (heartbeat) where heartbeat is not null;

-- A rule has at most one open alert for each subject. `pending`: the condition does not hold for long enough yet.
create table foliot.alerts (
    id uuid primary key,
    namespace text not null,
    rule text not null,
    -- A job, task or queue, or empty for the whole scope of the rule.
    subject text not null,
    state text not null,
    severity text not null,
    -- Each change raises it. A change of an older version matches nothing.
    version bigint not null default 1,
    since timestamptz not null,
    opened_at timestamptz,
    resolved_at timestamptz,
    -- Null if it resolved by itself.
    resolved_by text,
    -- The last of the things that the alert counts.
    last_at timestamptz,
    number bigint not null,
    title text not null,
    summary text not null,
    subjects jsonb not null,
    log_tail text not null,
    -- The path of a page of the web UI.
    page text not null,
    -- The messages so far, and when the last was made.
    messages bigint not null default 0,
    told_at timestamptz,
    acknowledged_at timestamptz,
    acknowledged_by text,
    note text,
    constraint alerts_state_is_known check (state in ('pending', 'open', 'resolved')),
    constraint alerts_resolved_have_an_end check ((state = 'resolved') = (resolved_at is not null))
);
create unique index alerts_unresolved on foliot.alerts (rule, subject) where state <> 'resolved';
create index alerts_of_namespace on foliot.alerts (namespace, id);
create index alerts_resolved on foliot.alerts (resolved_at) where state = 'resolved';

-- Times for which alerts are not sent.
create table foliot.alert_silences (
    id uuid primary key,
    namespace text not null,
    -- Null: of every rule of the namespace.
    rule text,
    -- Null: of every subject.
    subject text,
    reason text not null,
    created_at timestamptz not null,
    created_by text not null,
    until_at timestamptz not null
);
create index alert_silences_until on foliot.alert_silences (until_at);

-- Messages to send. The messages about one alert go to a channel in order.
create table foliot.alert_deliveries (
    -- Derives from the alert, the channel and the number of the message, so that it is made once.
    id uuid primary key,
    alert_id uuid not null references foliot.alerts (id) on delete cascade,
    number bigint not null,
    channel text not null,
    state text not null,
    created_at timestamptz not null,
    due_at timestamptz not null,
    attempt bigint not null default 0,
    finished_at timestamptz,
    error text,
    message jsonb not null,
    constraint alert_deliveries_state_is_known check (state in ('waiting', 'sent', 'failed', 'dropped'))
);
create index alert_deliveries_due on foliot.alert_deliveries (due_at) where state = 'waiting';
create index alert_deliveries_of_channel on foliot.alert_deliveries (channel, created_at);
create index alert_deliveries_of_alert on foliot.alert_deliveries (alert_id, number);
create index alert_deliveries_in_line on foliot.alert_deliveries (alert_id, channel, number) where state = 'waiting';

-- How many runs succeeded and failed, for rules that watch a share of them over a time.
create table foliot.alert_counts (
    rule text not null references foliot.alert_rules (name) on delete cascade,
    subject text not null,
    at timestamptz not null,
    succeeded bigint not null,
    failed bigint not null,
    primary key (rule, subject, at)
);

-- When each heartbeat came last. A rule declares the heartbeat.
create table foliot.heartbeats (
    name text primary key,
    at timestamptz not null,
    by text not null,
    number bigint not null default 1
);

-- The channels that alerts go out by.
create table foliot.alert_channels (
    name text primary key,
    version bigint not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    -- As users put it (see model/alert_channel.py), with references to secrets, and *** in place of the others.
    channel jsonb not null,
    -- By field, encrypted (see alerts/secrets.py).
    secrets jsonb not null
);

-- Running processes, each with the newest migration that it knows (see store/schema_watcher.py).
create table foliot.processes (
    id uuid primary key,
    part text not null,
    name text not null,
    knows bigint not null,
    started_at timestamptz not null,
    expires_at timestamptz not null
);
