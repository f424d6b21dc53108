-- Returns the namespace of a stored name (see model/namespace.py).
create or replace function foliot.namespace_of(qualified text) returns text language sql immutable parallel safe
return case when strpos(qualified, '/') = 0 then 'default' else split_part(qualified, '/', 1) end;
