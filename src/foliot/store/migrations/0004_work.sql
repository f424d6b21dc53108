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
create index runs_expiring on foliot.runs (expires_at) where expires_at is not null and state <> 'running' and started_at is null;
create index runs_of_key on foliot.runs (concurrency_key) where concurrency_key is not null and state in ('ready', 'running');
create index runs_waiting_for_key on foliot.runs (concurrency_key, rank) where held_by = 'limit';
create index runs_in_turn on foliot.runs (queue, fairness_key, rank) where fairness_key is not null and state = 'ready';
create index runs_waiting_for_rate on foliot.runs (rate_key, rank) where held_by = 'limit';

-- `fingerprint`: equal for failures of the same kind. `rerun_as`: the run that was last made to take the place of this one.
alter table foliot.history
    add column rerun_of uuid,
    add column rerun_as uuid,
    add column fingerprint text;
-- Failed runs are few, and asked for in two orders: as dead letters by when they failed, among all runs by id.
create index history_dead on foliot.history (finished_at, id) where state = 'failed';
create index history_failed on foliot.history (id) where state = 'failed';

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
    -- json, not jsonb: it is given again as it was
    answer json not null,
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

-- Submits a one-off job from inside any transaction, in any language: it is there if and when that transaction commits. Answers with the run's
-- id. The fields are those of `POST /v1/jobs`; a job on a schedule is made over there. No worker is woken, because a NOTIFY would make commits
-- wait for each other: it is found when they next look, by default within a second. `aging_seconds` is for installations that set their own.
-- It runs with the rights of its caller, who needs to read foliot.tasks and to read, insert into and update foliot.runs.
create function foliot.submit(job jsonb) returns uuid language plpgsql as $$
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
