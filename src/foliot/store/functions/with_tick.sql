-- The options of a run that is for a tick of a job: model/tick.py describes what is added. Instants are in seconds since
-- the epoch. A zone of UTC and the origin `schedule` are left out.
create or replace function foliot.with_tick(
    options jsonb, at float8, previous float8, next float8, origin text, schedule jsonb, name text, job_id uuid
) returns jsonb language sql immutable parallel safe return coalesce(options, '{}')
    || jsonb_build_object('tick', jsonb_strip_nulls(jsonb_build_object(
        'at', at, 'previous', previous, 'next', next, 'origin', origin, 'zone', schedule -> 'timezone', 'job', name,
        'job_id', job_id
    )));
