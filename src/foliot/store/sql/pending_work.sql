-- Cheap polls by which a scheduler service sees whether it has anything to do. The answer is almost always no.

-- name: gates_in_use(now)
-- Whether a key may admit runs, a circuit may send a probe, a pause has expired, runs are parked, or
-- a condition is to be decided.
--
-- Lock: none. The statements that act on the answer check again.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
-- By the keys, of which every limit has one: without them, no index has the runs, and all runs are read.
select exists (select from foliot.runs where held_by = 'limit' and options #>> '{concurrency,key}' is not null)
    or exists (select from foliot.runs where held_by = 'limit' and options #>> '{rate,key}' is not null)
    or exists (select from foliot.turns where look_at <= (select at from clock)),
    exists (select from foliot.circuits, clock where open_until <= clock.at),
    exists (select from foliot.pauses, clock where until_at <= clock.at),
    exists (select from foliot.runs where held_by in ('pause', 'circuit', 'no_worker')),
    exists (select from foliot.runs where held_by = 'condition')
from clock

-- name: waits_in_use(now)
-- Whether a run is to be cancelled, a run waits to be linked, a run is held by an earlier run of its job, the pause of
-- a job has expired, a run that another one called has ended, or a replay is under way.
select exists (select from foliot.runs where cancel is not null)
    or exists (select from foliot.parents where stop is not null and finished_at is null),
    exists (select from foliot.links), exists (select from foliot.runs where held_by = 'overlap'),
    coalesce((select min(paused_until) from foliot.jobs) <= coalesce(:now::timestamptz, clock_timestamp()), false),
    exists (select from foliot.nudges),
    exists (select from foliot.replays where state in ('waiting', 'releasing'))
