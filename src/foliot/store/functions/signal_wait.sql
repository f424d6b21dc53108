-- Returns how long a run waits for its signal: ten years unless its options say otherwise.
create or replace function foliot.signal_wait(options jsonb) returns interval language sql immutable parallel safe
return coalesce((options #>> '{signal,timeout_seconds}')::float8, 315360000) * interval '1 second';
