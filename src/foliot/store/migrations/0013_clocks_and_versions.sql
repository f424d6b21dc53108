-- works beside: 12
-- Leases tell when they were renewed, so that a clock that was set back is noticed. Processes tell which migrations they know, and migrations
-- which processes they leave working.

alter table foliot.schedulers add column beat_at timestamptz;

-- The newest migration that a process must know to work beside this one. Null: this one itself.
alter table foliot.migrations add column works_beside bigint;

-- Runs that wait for a limit, by both of their keys: those that the one lets pass are found however many the other holds back. A run that has
-- one of the keys only is in two of these indexes, as before.
drop index foliot.runs_waiting_for_key, foliot.runs_waiting_for_rate;
create index runs_waiting_for_key on foliot.runs ((options #>> '{concurrency,key}'), rank)
    where held_by = 'limit' and options #>> '{concurrency,key}' is not null;
create index runs_waiting_for_rate on foliot.runs ((options #>> '{rate,key}'), rank)
    where held_by = 'limit' and options #>> '{rate,key}' is not null;
create index runs_of_key_by_rate on foliot.runs ((options #>> '{concurrency,key}'), (options #>> '{rate,key}'), rank)
    where held_by = 'limit' and options #>> '{concurrency,key}' is not null;
create index runs_of_rate_by_key on foliot.runs ((options #>> '{rate,key}'), (options #>> '{concurrency,key}'), rank)
    where held_by = 'limit' and options #>> '{rate,key}' is not null;

-- Processes that work with this schema, each for as long as it goes on telling so.
create table foliot.processes (
    id uuid primary key,
    part text not null,
    name text not null,
    knows bigint not null,
    started_at timestamptz not null,
    expires_at timestamptz not null
);
