-- Formats an instant as the API does, whatever the time zone of the session.
create or replace function foliot.utc_text(at timestamptz) returns text language sql stable parallel safe
return to_char(at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
