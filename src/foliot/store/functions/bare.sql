-- Returns a name without its namespace.
create or replace function foliot.bare(qualified text) returns text language sql immutable parallel safe
return regexp_replace(qualified, '^.*/', '');
