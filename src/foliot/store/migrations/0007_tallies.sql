-- What has been counted since the database was made: for /metrics, at a cost that does not grow with history. Processes add to it about once
-- a second; each adds to a slot of its own choice, so that many of them do not queue up for the same rows.
create table foliot.tallies (
    slot bigint not null,
    name text not null,
    value double precision not null,
    primary key (slot, name)
) with (fillfactor = 50);
