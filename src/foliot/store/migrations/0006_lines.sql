-- Long lines of runs that nobody may start stand apart from those that may be claimed; workers tell what will not end.

-- `held_by` is 'pause', 'circuit' or 'no_worker' for a run that stood in such a line. Short ones stay ready, and are stepped over.
create index runs_parked on foliot.runs (queue, task, rank) where held_by in ('pause', 'circuit', 'no_worker');

-- Functions that go on after their attempts have ended, each in a slot of its own.
alter table foliot.workers add column left_running bigint not null default 0;

-- Those that wait for the run before them, however many limits hold others.
create index runs_overlapping on foliot.runs (job_id) where held_by = 'overlap';
