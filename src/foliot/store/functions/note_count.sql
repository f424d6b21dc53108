-- Adds to a count from inside somebody else's transaction.
--
-- It runs with the rights of its owner, so a role that may call foliot.submit needs no further rights. The names in its
-- body were resolved when it was created, so it needs no search_path.
create or replace function foliot.note_count(counted_as text, number bigint) returns void language sql security definer
begin atomic
    insert into foliot.counted (name, value) select counted_as, number where number > 0;
end;
