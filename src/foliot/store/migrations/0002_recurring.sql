-- Recurring jobs, the shards that scheduler nodes own, and the ticks that did not become a run.

-- A recurring job, with the cursor of its schedule. `next_at` is the first tick that has not been dealt with; `fire_at` is that tick plus its
-- jitter, and null while there is nothing to wait for (paused, or no tick to come).
create table foliot.jobs (
    id uuid primary key,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    next_at timestamptz,
    fire_at timestamptz,
    paused_at timestamptz,
    paused_until timestamptz,
    shard bigint not null,
    version bigint not null default 1,
    priority bigint not null,
    runs_left bigint,
    name text not null,
    task text not null,
    queue text not null,
    paused_reason text,
    schedule jsonb not null,
    payload jsonb,
    options jsonb,
    constraint jobs_name_is_unique unique (name),
    constraint jobs_fire_with_their_tick check ((fire_at is null) or (next_at is not null)),
    constraint jobs_paused_do_not_fire check (paused_at is null or fire_at is null)
) with (fillfactor = 80);
-- The cursor of a shard: what is due next. Everything further away is not touched.
create index jobs_due on foliot.jobs (shard, fire_at) where fire_at is not null;
create index jobs_resuming on foliot.jobs (paused_until) where paused_until is not null;

-- Every version of a job's definition, for ever.
create table foliot.job_versions (
    job_id uuid not null,
    version bigint not null,
    made_at timestamptz not null,
    definition jsonb not null,
    primary key (job_id, version)
);

-- Ticks that did not become a run, each with its reason; one partition a day, as for history. A row with `until_at` sums up all ticks from `tick_at` to there.
create table foliot.ticks (
    job_id uuid not null,
    tick_at timestamptz not null,
    until_at timestamptz,
    noted_at timestamptz not null,
    reason text not null,
    blocked_by uuid,
    constraint ticks_reason_is_known check (reason in ('overlap', 'missed', 'superseded', 'paused'))
) partition by range (noted_at);
create index ticks_job on foliot.ticks (job_id, tick_at);

-- A slice of the jobs. Exactly one node owns it at a time, under an epoch that only grows.
create table foliot.shards (
    id bigint primary key,
    owner_id uuid,
    epoch bigint not null default 0,
    expires_at timestamptz
) with (fillfactor = 50);
insert into foliot.shards (id) select generate_series(0, 99);

create table foliot.schedulers (
    id uuid primary key,
    name text not null,
    started_at timestamptz not null,
    expires_at timestamptz not null
) with (fillfactor = 50);

-- Which job and which tick a run came from.
alter table foliot.runs add column job_id uuid, add column tick_at timestamptz;
alter table foliot.history add column job_id uuid, add column tick_at timestamptz;
create index runs_job on foliot.runs (job_id, tick_at) where job_id is not null;
create index history_job on foliot.history (job_id, tick_at) where job_id is not null;
