-- Recurring jobs: kept, fired, paused, shown. Whatever moves a cursor is fenced: by the version of the job, and for a scheduler by its epoch.

-- name: insert_job
-- Nothing when the name is taken; by this job itself when it is sent again after a lost answer.
with made as (
    insert into foliot.jobs (
        id, created_at, updated_at, next_at, fire_at, shard, priority, runs_left, name, task, queue, schedule, payload, options
    )
    select $1::uuid, at, at, $2::timestamptz, $3::timestamptz, $4::bigint, $5::bigint, $6::bigint, $7::text, $8::text, $9::text,
        $10::jsonb, $11::jsonb, $12::jsonb
    from (select coalesce($13::timestamptz, clock_timestamp()) as at) as clock
    on conflict do nothing
    returning id, created_at, jsonb_build_object(
        'name', name, 'task', task, 'queue', queue, 'priority', priority, 'schedule', schedule, 'payload', payload, 'options', options
    ) as definition
), kept as (
    insert into foliot.job_versions (job_id, version, made_at, definition) select id, 1, created_at, definition from made
)
select created_at from made
union all
select created_at from foliot.jobs where id = $1::uuid

-- name: database_now
-- The instant from which the ticks of a new or changed job are counted.
select coalesce($1::timestamptz, clock_timestamp())

-- name: get_job
-- By id or by name.
select id, name, task, queue, priority, schedule, payload, options, version, runs_left, next_at, fire_at,
    paused_at, paused_until, paused_reason, created_at, updated_at, shard
from foliot.jobs where id = $1::uuid or name = $2::text

-- name: list_jobs
-- A page, by name.
select id, name, task, queue, priority, schedule, payload, options, version, runs_left, next_at, fire_at,
    paused_at, paused_until, paused_reason, created_at, updated_at, shard
from foliot.jobs where name > $1::text order by name limit $2::bigint

-- name: change_job
-- A new version. It affects ticks after it only: the cursor is given anew, from where it was read to after now, and what was due in between
-- and had not fired is noted. A cursor that was moved, or passed, meanwhile: nothing is changed. A job without runs left stays ended.
with changed as (
    update foliot.jobs
    set version = version + 1, updated_at = coalesce($11::timestamptz, clock_timestamp()), next_at = $3::timestamptz,
        fire_at = case when paused_at is null and coalesce(runs_left, 1) > 0 then $4::timestamptz end, priority = $5::bigint,
        task = $6::text, queue = $7::text, schedule = $8::jsonb, payload = $9::jsonb, options = $10::jsonb
    where id = $1::uuid and version = $2::bigint and next_at is not distinct from $12::timestamptz
        and ($3::timestamptz is null or $3::timestamptz > coalesce($11::timestamptz, clock_timestamp()))
    returning id, version, updated_at, paused_at, jsonb_build_object(
        'name', name, 'task', task, 'queue', queue, 'priority', priority, 'schedule', schedule, 'payload', payload, 'options', options
    ) as definition
), kept as (
    insert into foliot.job_versions (job_id, version, made_at, definition) select id, version, updated_at, definition from changed
), noted as (
    insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason)
    select id, $13::timestamptz, $14::timestamptz, updated_at, case when paused_at is null then 'superseded' else 'paused' end
    from changed where $13::timestamptz is not null
)
select version from changed

-- name: delete_job
-- Its runs and its versions stay.
delete from foliot.jobs where id = $1::uuid returning true

-- name: pause_job
-- Out of the index, so that it costs nothing while it is paused. What it misses is noted when it resumes.
update foliot.jobs
set paused_at = coalesce($4::timestamptz, clock_timestamp()), paused_reason = $2::text, paused_until = $3::timestamptz, fire_at = null
where id = $1::uuid and paused_at is null
returning true

-- name: resume_job
-- Goes on after now; the ticks in between are summed up in one row.
with resumed as (
    update foliot.jobs
    set paused_at = null, paused_until = null, paused_reason = null, next_at = $3::timestamptz,
        fire_at = case when coalesce(runs_left, 1) > 0 then $4::timestamptz end
    where id = $1::uuid and version = $2::bigint and paused_at is not null
    returning id
), noted as (
    insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason)
    select id, $5::timestamptz, $6::timestamptz, coalesce($7::timestamptz, clock_timestamp()), 'paused'
    from resumed where $5::timestamptz is not null
)
select true from resumed

-- name: due_jobs
-- What is due in these shards up to a little ahead of now, longest due first; with the database's clock, which is the one that counts.
with clock as (
    select coalesce($4::timestamptz, clock_timestamp()) as at
)
select clock.at, j.id, j.version, j.next_at, j.fire_at, j.schedule, j.created_at
from clock
left join unnest($1::bigint[]) as mine (shard) on true
left join lateral (
    select * from foliot.jobs
    where shard = mine.shard and fire_at <= clock.at + $3::float8 * interval '1 second'
    order by fire_at
    limit $2::bigint
) as j on true

-- name: jobs_to_resume
-- Paused until an instant that has come.
select id from foliot.jobs where paused_until <= coalesce($1::timestamptz, clock_timestamp()) limit 1000

-- name: fire_ticks
-- Moves cursors, makes runs, and notes what did not become one, in one transaction, and only under epochs that are still in force. The
-- cursor is compared with what it was read as: a tick that another node dealt with matches nothing, nor does one that is not due yet.
with clock as (
    select coalesce($13::timestamptz, clock_timestamp()) as at
), mine as (
    select s.id from foliot.shards s join unnest($2::bigint[], $3::bigint[]) as e (id, epoch) on s.id = e.id and s.epoch = e.epoch, clock
    where s.owner_id = $1::uuid and s.expires_at > clock.at
    for share of s
), given as (
    select * from unnest($4::uuid[], $5::bigint[], $6::timestamptz[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::uuid[])
    as g (job_id, version, expected_at, next_at, fire_at, tick_at, run_id)
), moved as (
    update foliot.jobs j
    set next_at = g.next_at,
        fire_at = case when j.runs_left - (g.tick_at is not null)::int <= 0 then null else g.fire_at end,
        runs_left = j.runs_left - (g.tick_at is not null)::int
    from clock, given g, mine
    where j.id = g.job_id and j.version = g.version and j.next_at = g.expected_at and j.shard = mine.id and j.fire_at <= clock.at
    returning j.id, j.task, j.queue, j.name, j.priority, j.payload, j.options, coalesce(j.schedule ->> 'overlap', 'skip') as overlap,
        g.tick_at, g.run_id
), open as (
    select m.id, m.overlap, blocking.id as blocking_id, blocking.held
    from moved m
    cross join lateral (
        select (array_agg(r.id order by r.state = 'held', r.tick_at))[1] as id, count(*) filter (where r.state = 'held') as held
        from foliot.runs r where r.job_id = m.id
    ) as blocking
    where m.overlap <> 'allow_all' and blocking.id is not null
), fired as (
    insert into foliot.runs (id, created_at, due_at, rank, priority, state, queue, task, name, payload, options, job_id, tick_at)
    select m.run_id, clock.at, clock.at, (extract(epoch from clock.at) * 1000000)::bigint - m.priority * $12::bigint, m.priority,
        case when open.id is null then 'ready' else 'held' end, m.queue, m.task, m.name, m.payload, m.options, m.id, m.tick_at
    from clock, moved m left join open on open.id = m.id
    where m.tick_at is not null
        and (open.id is null or m.overlap = 'buffer_all' or (m.overlap = 'buffer_one' and open.held = 0))
    on conflict (id) do nothing
    returning id, job_id, queue, state
), overlapped as (
    insert into foliot.ticks (job_id, tick_at, noted_at, reason, blocked_by)
    select m.id, m.tick_at, clock.at, 'overlap', open.blocking_id
    from clock, moved m join open on open.id = m.id
    where m.tick_at is not null and not (m.overlap = 'buffer_all' or (m.overlap = 'buffer_one' and open.held = 0))
), noted as (
    insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason)
    select m.id, n.tick_at, n.until_at, clock.at, n.reason
    from clock, jsonb_to_recordset($11::jsonb) as n (job_id uuid, tick_at timestamptz, until_at timestamptz, reason text)
    join moved m on m.id = n.job_id
)
select (select count(*) from moved), (select count(*) from fired), array(select distinct queue from fired where state = 'ready')

-- name: release_held
-- held -> ready: the oldest held run of each job whose other runs have ended. Only the shard's owner does it, or two would start at once.
-- A deleted job has no shard any more; what it has left is the business of the first one's owner.
with mine as (
    select s.id from foliot.shards s join unnest($2::bigint[], $3::bigint[]) as e (id, epoch) on s.id = e.id and s.epoch = e.epoch
    where s.owner_id = $1::uuid and s.expires_at > coalesce($4::timestamptz, clock_timestamp())
    for share of s
), next as (
    select distinct on (r.job_id) r.id
    from foliot.runs r left join foliot.jobs j on j.id = r.job_id join mine on mine.id = coalesce(j.shard, 0)
    where r.state = 'held' and r.job_id is not null
        and not exists (select from foliot.runs other where other.job_id = r.job_id and other.state <> 'held')
    order by r.job_id, r.tick_at
)
update foliot.runs set state = 'ready' where id = any (array(select id from next)) and state = 'held'
returning queue

-- name: insert_triggered_run
-- A run by hand, beside the schedule. Sent again after a lost answer, it finds the run that it made, live or finished ($5: since when), and
-- makes no other.
with made as (
    insert into foliot.runs (id, created_at, due_at, rank, priority, state, queue, task, name, payload, options, job_id, tick_at)
    select $1::uuid, at, at, (extract(epoch from at) * 1000000)::bigint - j.priority * $3::bigint, j.priority, 'ready', j.queue, j.task,
        j.name, j.payload, j.options, j.id, at
    from foliot.jobs j, (select coalesce($4::timestamptz, clock_timestamp()) as at) as clock
    where j.id = $2::uuid
        and not exists (select from foliot.history h where h.id = $1::uuid and h.finished_at >= $5::timestamptz)
    on conflict (id) do nothing
)
select queue from foliot.jobs where id = $2::uuid

-- name: insert_backfill
-- Runs for ticks of the past. One that became a run before, live or finished, is left alone: its id says so.
insert into foliot.runs (id, created_at, due_at, rank, priority, state, queue, task, name, payload, options, job_id, tick_at)
select t.run_id, at, at, (extract(epoch from at) * 1000000)::bigint - j.priority * $5::bigint + t.ordinal, j.priority, $4::text, j.queue,
    j.task, j.name, j.payload, j.options, j.id, t.tick_at
from foliot.jobs j, (select coalesce($6::timestamptz, clock_timestamp()) as at) as clock,
    unnest($2::uuid[], $3::timestamptz[]) with ordinality as t (run_id, tick_at, ordinal)
where j.id = $1::uuid and not exists (select from foliot.history h where h.job_id = j.id and h.tick_at = t.tick_at)
on conflict (id) do nothing
returning tick_at

-- name: find_fired
-- Which of these ticks have become a run.
select tick_at from foliot.runs where job_id = $1::uuid and tick_at = any ($2::timestamptz[])
union all
select tick_at from foliot.history where job_id = $1::uuid and tick_at = any ($2::timestamptz[])

-- name: list_ticks
-- Every tick with what became of it, latest first.
select tick_at, until_at, outcome, run_id, blocked_by from (
    select tick_at, null::timestamptz as until_at, state as outcome, id as run_id, null::uuid as blocked_by
    from foliot.runs where job_id = $1::uuid
    union all
    select tick_at, null, state, id, null from foliot.history where job_id = $1::uuid
    union all
    select tick_at, until_at, reason, null, blocked_by from foliot.ticks where job_id = $1::uuid
) as t
order by tick_at desc limit $2::bigint
