-- Decides by the overlap policy what becomes of a tick: a run that is 'ready' or 'held', or null if no run.
--
-- `is_blocked`: an earlier run of the job is live. `waiting`: how many runs of the job wait for an earlier one already.
-- model/overlap.py describes the policies.
create or replace function foliot.overlap_verdict(
    policy text, is_blocked boolean, waiting bigint, buffer_max bigint
) returns text
language sql immutable parallel safe
return case
    when not is_blocked or policy in ('allow_all', 'terminate_other') then 'ready'
    when policy = 'cancel_other' or (policy = 'buffer_one' and waiting = 0) then 'held'
    when policy = 'buffer_all' and waiting < buffer_max then 'held'
end;
