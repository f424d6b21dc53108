-- Counts runs that the database itself ended: skipped or stopped steps, and parents that ended with their last child.
create or replace function foliot.note_endings(ended foliot.ending[]) returns void language sql
begin atomic
    insert into foliot.counted (name, value) select state, count(*) from unnest(ended) as e group by state;
end;
