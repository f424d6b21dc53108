-- Returns a name as it is stored: `namespace/name`, or the bare name in the default namespace.
create or replace function foliot.qualified(namespace text, name text) returns text language sql immutable parallel safe
return case when namespace = 'default' then name else namespace || '/' || name end;
