-- works beside: 12
-- Leases tell when they were renewed, so that a clock that was set back is noticed. Processes tell which migrations they know, and migrations
-- which processes they leave working.

alter table foliot.schedulers add column beat_at timestamptz;

-- The newest migration that a process must know to work beside this one. Null: this one itself.
alter table foliot.migrations add column works_beside bigint;

-- Processes that work with this schema, each for as long as it goes on telling so.
create table foliot.processes (
    id uuid primary key,
    part text not null,
    name text not null,
    knows bigint not null,
    started_at timestamptz not null,
    expires_at timestamptz not null
);
