-- Exclusion calendars, the zone rules under which cursors were set, and the mark by which a run is cancelled.

create table foliot.calendars (
    name text primary key,
    version bigint not null default 1,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    days jsonb not null
);

-- `calendar` is the one that the schedule names. `calendar_version` is that under which `next_at` was found, where it depends on it; `utc_offset`,
-- in seconds, that of the job's zone at `next_at` when it was found: another node may know other rules.
alter table foliot.jobs
    add column calendar text generated always as (schedule ->> 'calendar') stored,
    add column calendar_version bigint,
    add column utc_offset bigint,
    add constraint jobs_calendar_exists foreign key (calendar) references foliot.calendars (name);
create index jobs_calendar on foliot.jobs (calendar, calendar_version) where calendar is not null;

-- What is due is found by the four seconds it falls into. A job that fires every second then changes an indexed column only every fourth
-- time; in between, its row is updated in place, and no index is touched. (PostgreSQL can't know that the epoch of an instant is immutable.)
create function foliot.due_bucket(at timestamptz) returns bigint language sql immutable strict parallel safe
    return floor(extract(epoch from at) / 4)::bigint;
alter table foliot.jobs
    add column due_bucket bigint generated always as (foliot.due_bucket(fire_at)) stored,
    set (fillfactor = 70);
drop index foliot.jobs_due;
create index jobs_due on foliot.jobs (shard, due_bucket) where due_bucket is not null;

-- The fingerprint of the zone rules under which the cursors of a shard were last looked through.
alter table foliot.shards add column zones text;

alter table foliot.ticks
    drop constraint ticks_reason_is_known,
    add constraint ticks_reason_is_known check (reason in ('overlap', 'missed', 'superseded', 'paused', 'excluded'));

-- Asked to be cancelled: {reason, message, is_forced}. Whoever holds the run ends it, and what nobody holds is closed.
alter table foliot.runs add column cancel jsonb;
create index runs_cancelled on foliot.runs (id) where cancel is not null;

-- Few, and asked for often: those that wait for another run of their job.
create index runs_held on foliot.runs (job_id) where state = 'held';
