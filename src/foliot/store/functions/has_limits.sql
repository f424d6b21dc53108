-- Says whether a run has a concurrency or rate limit, and so has to pass the gatekeeper before it is ready.
--
-- PostgreSQL inlines the function, so a call costs the same as the operator.
create or replace function foliot.has_limits(options jsonb) returns boolean language sql immutable parallel safe
return options ?| '{concurrency,rate}';
