-- Recurring jobs: kept, fired, paused, shown. Whatever moves a cursor is fenced: by the version of the job, and for a
-- scheduler by its epoch.

-- name: insert_job(
--     id, next_at, fire_at, shard, priority, runs_left, name, task, queue, schedule, payload, options, created_at,
--     utc_offset, found_under
-- )
-- Nothing when the name is taken; by this job itself when it is sent again after a lost answer.
with made as (
    insert into foliot.jobs (
        id, created_at, updated_at, next_at, fire_at, shard, priority, runs_left, name, task, queue, schedule, payload,
        options,
        utc_offset, calendar_version
    )
    select :id::uuid, at, at, :next_at::timestamptz, :fire_at::timestamptz, :shard::bigint, :priority::bigint,
        :runs_left::bigint, :name::text, :task::text, :queue::text,
        :schedule::jsonb, :payload::jsonb, :options::jsonb, :utc_offset::bigint, :found_under::bigint
    from (select coalesce(:created_at::timestamptz, clock_timestamp()) as at) as clock
    on conflict do nothing
    returning id, created_at, jsonb_build_object(
        'name', name, 'task', task, 'queue', queue, 'priority', priority, 'schedule', schedule, 'payload', payload,
        'options', options
    ) as definition
), kept as (
    insert into foliot.job_versions (job_id, version, made_at, definition) select id, 1, created_at, definition
    from made
)
select created_at from made
union all
select created_at from foliot.jobs where id = :id::uuid

-- name: insert_job_dependencies(job_id, upstream_ids, fires, aging)
-- :fires: the job has no schedule of its own, and is fired by them.
insert into foliot.job_dependencies (job_id, upstream_id, fires, aging)
select :job_id::uuid, upstream_id, :fires::boolean, :aging::bigint from unnest(:upstream_ids::uuid[]) as u (upstream_id)
on conflict do nothing

-- name: dependent_jobs(job_id)
-- Those that wait for this one.
select j.name from foliot.job_dependencies d join foliot.jobs j on j.id = d.job_id where d.upstream_id = :job_id::uuid
order by j.name limit 10

-- name: link_runs(limit, now)
-- Runs of jobs that depend on others, tied to the runs that they wait for.
select foliot.link_runs(:limit::bigint, coalesce(:now::timestamptz, clock_timestamp()))

-- name: database_now(now)
-- The instant from which the ticks of a new or changed job are counted.
select coalesce(:now::timestamptz, clock_timestamp())

-- name: get_job(job_id, name)
-- By id or by name.
select j.id, j.name, j.task, j.queue, j.priority, j.schedule, j.payload, j.options, j.version, j.runs_left, j.next_at,
    j.fire_at,
    j.paused_at, j.paused_until, j.paused_reason, j.created_at, j.updated_at, j.shard, j.utc_offset,
    c.version as calendar_version,
    c.days as calendar
from foliot.jobs j left join foliot.calendars c on c.name = j.calendar
where j.id = :job_id::uuid or j.name = :name::text

-- name: list_jobs(after_name, limit, namespace)
-- A page, by name. The names of a namespace stand together in the index. From the default namespace, whose names stand
-- between those of the others, one step leads past all jobs of another.
with recursive walked (name, number) as (
    (
        select name, (foliot.namespace_of(name) = :namespace::text)::int::bigint from foliot.jobs
        where name > :after_name::text order by name limit 1
    )
    union all
    select next.name, walked.number + (foliot.namespace_of(next.name) = :namespace::text)::int
    from walked cross join lateral (
        (
            select name from foliot.jobs
            where foliot.namespace_of(walked.name) = :namespace::text and name > walked.name order by name limit 1
        )
        union all
        (
            select name from foliot.jobs
            where foliot.namespace_of(walked.name) <> :namespace::text and :namespace::text = 'default'
                and name >= foliot.namespace_of(walked.name) || '0'
            order by name limit 1
        )
    ) as next
    where walked.number < :limit::bigint
)
select j.id, j.name, j.task, j.queue, j.priority, j.schedule, j.payload, j.options, j.version, j.runs_left, j.next_at,
    j.fire_at,
    j.paused_at, j.paused_until, j.paused_reason, j.created_at, j.updated_at, j.shard, j.utc_offset,
    c.version as calendar_version,
    c.days as calendar
from foliot.jobs j left join foliot.calendars c on c.name = j.calendar
where j.name = any (array(select name from walked where foliot.namespace_of(name) = :namespace::text)) order by j.name

-- name: list_tagged_jobs(after_name, tag, limit, scan, namespace)
-- A page of those with a tag, by name. Looks at :scan of those that have tags at all, and says how far it got.
with scanned as materialized (
    select id, name, options -> 'tags' as tags from foliot.jobs where options ? 'tags' and name > :after_name::text
    order by name limit :scan::bigint
)
select s.count, s.last_name, j.*
from (select count(*) as count, max(name) as last_name from scanned) as s left join (
    select j.id, j.name, j.task, j.queue, j.priority, j.schedule, j.payload, j.options, j.version, j.runs_left,
        j.next_at, j.fire_at,
        j.paused_at, j.paused_until, j.paused_reason, j.created_at, j.updated_at, j.shard, j.utc_offset,
        c.version as calendar_version,
        c.days as calendar
    from scanned join foliot.jobs j on j.id = scanned.id left join foliot.calendars c on c.name = j.calendar
    where scanned.tags ? :tag::text and foliot.namespace_of(j.queue) = :namespace::text order by j.name
    limit :limit::bigint
) as j on true
order by j.name

-- name: match_jobs(pattern, task, queue, is_paused, limit, tag, namespace, whole_name, after_name, scan)
-- The first so many by name of those that fit, and are paused or not (:is_paused; null: either). One whose whole name
-- is given (:whole_name) is looked up. Else it looks at :scan jobs of the namespace after :after_name, walking as
-- list_jobs does, and says how far it got.
with recursive walked (name, number) as (
    (
        select name, (foliot.namespace_of(name) = :namespace::text)::int::bigint from foliot.jobs
        where :whole_name::text is null and name > :after_name::text order by name limit 1
    )
    union all
    select next.name, walked.number + (foliot.namespace_of(next.name) = :namespace::text)::int
    from walked cross join lateral (
        (
            select name from foliot.jobs
            where foliot.namespace_of(walked.name) = :namespace::text and name > walked.name order by name limit 1
        )
        union all
        (
            select name from foliot.jobs
            where foliot.namespace_of(walked.name) <> :namespace::text and :namespace::text = 'default'
                and name >= foliot.namespace_of(walked.name) || '0'
            order by name limit 1
        )
    ) as next
    where walked.number < :scan::bigint
), scanned as materialized (
    select id, name, task, queue, paused_at, options from foliot.jobs
    where name = any (array(
        select name from walked where foliot.namespace_of(name) = :namespace::text
        union all
        select :whole_name::text where foliot.namespace_of(:whole_name::text) = :namespace::text
    ))
)
select s.count, s.last_name, j.id, j.name
from (select count(*) as count, max(name) as last_name from scanned) as s left join (
    select id, name from scanned
    where (:pattern::text is null or name like :pattern::text) and (:task::text is null or task = :task::text)
        and (:queue::text is null or queue = :queue::text)
        and (:is_paused::boolean is null or (paused_at is not null) = :is_paused::boolean)
        and (:tag::text is null or options -> 'tags' ? :tag::text)
    order by name limit :limit::bigint
) as j on true
order by j.name

-- name: change_job(
--     job_id, version, next_at, fire_at, priority, task, queue, schedule, payload, options, now, next_at_before,
--     first_missed, last_missed, utc_offset, found_under, runs_left, upcoming
-- )
-- A new version. It affects ticks after it only: the cursor is given anew, from where it was read to after now, and
-- what was due in between and had not fired is noted. A cursor that was moved meanwhile, or passed, by the new schedule
-- or by the old one (:upcoming): nothing is changed. A job without runs left stays ended. With a schedule of its own,
-- one that depends on others is no longer fired by them; without one, it is.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), changed as (
    update foliot.jobs
    set version = version + 1, updated_at = clock.at, next_at = :next_at::timestamptz,
        fire_at = case when paused_at is null and coalesce(:runs_left::bigint, 1) > 0 then :fire_at::timestamptz end,
        priority = :priority::bigint,
        task = :task::text, queue = :queue::text, schedule = :schedule::jsonb, payload = :payload::jsonb,
        options = :options::jsonb, utc_offset = :utc_offset::bigint,
        calendar_version = :found_under::bigint, runs_left = :runs_left::bigint
    from clock
    where id = :job_id::uuid and version = :version::bigint
        and next_at is not distinct from :next_at_before::timestamptz
        and coalesce(least(:next_at::timestamptz, :upcoming::timestamptz) > clock.at, true)
    returning id, version, updated_at, paused_at, jsonb_build_object(
        'name', name, 'task', task, 'queue', queue, 'priority', priority, 'schedule', schedule, 'payload', payload,
        'options', options
    ) as definition
), kept as (
    insert into foliot.job_versions (job_id, version, made_at, definition) select id, version, updated_at, definition
    from changed
), noted as (
    insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason)
    select id, :first_missed::timestamptz, :last_missed::timestamptz, updated_at,
        case when paused_at is null then 'superseded' else 'paused' end
    from changed where :first_missed::timestamptz is not null
), dependent as (
    update foliot.job_dependencies d set fires = not d.fires, succeeded_at = null
    from changed where d.job_id = changed.id and d.fires = (:schedule::jsonb ?| '{cron,every,times}')
)
select version from changed

-- name: delete_job(job_id, version)
-- Its runs and its versions stay. Given a version (:version), only that.
delete from foliot.jobs where id = :job_id::uuid and (:version::bigint is null or version = :version::bigint)
returning true

-- name: pause_job(job_id, reason, until, now, version)
-- Out of the index, so that it costs nothing while it is paused. What it misses is noted when it resumes. Paused again,
-- it gets the new reason and end, and has been paused since the first time. Given a version (:version), only that.
update foliot.jobs
set paused_at = coalesce(paused_at, :now::timestamptz, clock_timestamp()), paused_reason = :reason::text,
    paused_until = :until::timestamptz,
    fire_at = null
where id = :job_id::uuid and (:version::bigint is null or version = :version::bigint)
returning true

-- name: resume_job(
--     job_id, version, next_at, fire_at, first_missed, last_missed, now, utc_offset, found_under, paused_at,
--     paused_until
-- )
-- Goes on after now; the ticks in between are summed up in one row. Only from the very pause that was read, which may
-- have been prolonged.
with resumed as (
    update foliot.jobs
    set paused_at = null, paused_until = null, paused_reason = null, next_at = :next_at::timestamptz,
        utc_offset = :utc_offset::bigint,
        calendar_version = :found_under::bigint,
        fire_at = case when coalesce(runs_left, 1) > 0 then :fire_at::timestamptz end
    where id = :job_id::uuid and version = :version::bigint and paused_at = :paused_at::timestamptz
        and paused_until is not distinct from :paused_until::timestamptz
    returning id
), noted as (
    insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason)
    select id, :first_missed::timestamptz, :last_missed::timestamptz, coalesce(:now::timestamptz, clock_timestamp()),
        'paused'
    from resumed where :first_missed::timestamptz is not null
)
select true from resumed

-- name: due_jobs(shards, limit, ahead_seconds, now)
-- What is due in these shards up to a little ahead of now, longest due first.
select j.id, j.version, extract(epoch from j.next_at)::bigint, extract(epoch from j.fire_at)::bigint, j.schedule,
    floor(extract(epoch from j.created_at))::bigint, j.shard, j.utc_offset, c.days
from unnest(:shards::bigint[]) as mine (shard)
cross join (select coalesce(:now::timestamptz, clock_timestamp())
    + :ahead_seconds::float8 * interval '1 second' as at) as horizon
cross join lateral (
    select * from foliot.jobs
    where shard = mine.shard and due_bucket <= foliot.due_bucket(horizon.at) and fire_at <= horizon.at
    order by due_bucket, fire_at
    limit :limit::bigint
) as j
left join foliot.calendars c on c.name = j.calendar

-- name: stale_jobs(limit)
-- Those whose next tick was found under a calendar that has been changed since. Below and above its version, since an
-- index can't be asked for what is unlike.
select j.id from foliot.calendars c cross join lateral (
    (select id from foliot.jobs where calendar = c.name and calendar_version < c.version limit :limit::bigint)
    union all
    (select id from foliot.jobs where calendar = c.name and calendar_version > c.version limit :limit::bigint)
) as j limit :limit::bigint

-- name: jobs_on_the_wall(shards, after, limit)
-- Those of these shards that will fire at a time on a wall. One look through the table for all shards of a node, and
-- not one for each; so many jobs at a time, in the order of the key, whether or not there is one of those among them.
-- The last row is where to go on from.
with page as materialized (
    select id, shard, due_bucket, next_at, utc_offset, schedule from foliot.jobs where id > :after::uuid order by id
    limit :limit::bigint
)
select id, next_at, utc_offset, coalesce(schedule ->> 'timezone', 'UTC') from page
where shard = any (:shards::bigint[]) and utc_offset is not null and due_bucket is not null
union all
(select id, null, null, null from page order by id desc limit 1)

-- name: replan_job(job_id, version, next_at_before, next_at, fire_at, utc_offset, found_under)
-- The cursor is set anew, because the rules by which it was found have changed; only from where it was read, and only
-- if nobody edited it.
update foliot.jobs
set next_at = :next_at::timestamptz, fire_at = case when paused_at is null
    and coalesce(runs_left, 1) > 0 then :fire_at::timestamptz end,
    utc_offset = :utc_offset::bigint, calendar_version = :found_under::bigint
where id = :job_id::uuid and version = :version::bigint and next_at is not distinct from :next_at_before::timestamptz
returning true

-- name: waits_in_use(now)
-- Whether a run was asked to end, one waits to be tied to another, one is held for the one before it, or a pause is
-- over: asked often, and mostly answered with no.
select exists (select from foliot.runs where cancel is not null)
    or exists (select from foliot.parents where stop is not null and finished_at is null),
    exists (select from foliot.links), exists (select from foliot.runs where held_by = 'overlap'),
    coalesce((select min(paused_until) from foliot.jobs) <= coalesce(:now::timestamptz, clock_timestamp()), false)

-- name: jobs_to_resume(now)
-- Paused until an instant that has come.
select id from foliot.jobs where paused_until <= (select coalesce(:now::timestamptz, clock_timestamp())) limit 1000

-- name: fire_ticks(
--     scheduler_id, aging, now, shards, epochs, buffer_max, job_ids, versions, job_shards, overlaps, expected_ticks,
--     next_ticks, next_fires, utc_offsets, ticks, run_ids, notes, is_ahead, fires
-- )
-- Moves cursors, makes runs, and notes what did not become one, in one transaction, and only under epochs that are
-- still in force. The cursor is compared with what it was read as: a tick that another node dealt with matches nothing,
-- nor does one that is not due yet. The overlap policy is that of the version it was read with, which is compared too.
-- What must make room for a new run is marked. A run is due at its tick's instant, jitter included (:fires), however
-- late it is made: lateness is measured from there. Its place in line is that of its due instant too, but what is
-- caught up gets no more than a minute's lead over runs that are due now. A tick whose way is barred by a run that
-- itself was made late, after this tick's instant, was not overlapped: it was missed. Ahead of the instant (:is_ahead),
-- only what has nothing in its way is fired: what is open now may have ended by then. No lock on the shards is needed:
-- that on the job's row makes whoever else fires it wait, and find the cursor moved.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), mine as (
    select s.id from foliot.shards s
    join unnest(:shards::bigint[], :epochs::bigint[]) as e (id, epoch) on s.id = e.id and s.epoch = e.epoch, clock
    where s.owner_id = :scheduler_id::uuid and s.expires_at > clock.at
), decided as materialized (
    select g.*, open.blocking_id, case
            when g.tick_at is null then null
            when open.blocking_id is null or g.overlap = 'terminate_other' then 'ready'
            when g.overlap = 'cancel_other' or (g.overlap = 'buffer_one' and open.held = 0) then 'held'
            when g.overlap = 'buffer_all' and open.held < :buffer_max::bigint then 'held'
        end as verdict
    from (
        select job_id, version, shard, overlap, to_timestamp(expected) as expected_at, to_timestamp(next) as next_at,
            to_timestamp(fire) as fire_at, utc_offset, to_timestamp(tick) as tick_at, run_id,
            to_timestamp(due) as due_at
        from unnest(
            :job_ids::text::uuid[], :versions::text::bigint[], :job_shards::text::bigint[], :overlaps::text::text[],
            :expected_ticks::text::bigint[], :next_ticks::text::bigint[],
            :next_fires::text::bigint[], :utc_offsets::text::bigint[], :ticks::text::bigint[], :run_ids::text::uuid[],
            :fires::text::bigint[]
        ) as t (job_id, version, shard, overlap, expected, next, fire, utc_offset, tick, run_id, due)
    ) as g
    cross join lateral (
        select (array_agg(r.id order by r.state = 'held', r.tick_at))[1] as blocking_id,
            count(*) filter (where r.held_by = 'overlap') as held
        from foliot.runs r where r.job_id = g.job_id and g.overlap <> 'allow_all'
    ) as open
    where g.shard in (select id from mine) and not (:is_ahead::boolean and open.blocking_id is not null)
), moved as (
    update foliot.jobs j
    set next_at = d.next_at,
        fire_at = case when j.runs_left - (d.verdict is not null)::int <= 0 then null else d.fire_at end,
        runs_left = j.runs_left - (d.verdict is not null)::int,
        utc_offset = d.utc_offset
    from clock, decided d
    where j.id = d.job_id and j.version = d.version and j.next_at = d.expected_at and j.shard = d.shard
        and j.fire_at <= clock.at
    returning j.id, j.version, d.expected_at, j.fire_at, j.task, j.queue, j.name, j.priority, j.payload, j.options,
        d.overlap, d.tick_at, d.run_id, d.due_at,
        d.verdict, d.blocking_id, d.verdict = 'ready' and foliot.has_limits(j.options) as is_limited,
        jsonb_array_length(j.schedule -> 'after') as dependencies
), fired as (
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, job_id, tick_at,
        rule, unmet
    )
    select m.run_id, clock.at, m.due_at,
        (extract(epoch from greatest(
            m.due_at, case when m.dependencies is null then clock.at - interval '1 minute' end
        )) * 1000000)::bigint - m.priority * :aging::bigint,
        m.priority,
        case when m.dependencies is not null then 'waiting' when m.is_limited then 'held' else m.verdict end,
        case when m.dependencies is not null then null when m.is_limited then 'limit'
            when m.verdict = 'held' then 'overlap' end,
        m.queue, m.task, m.name, m.payload, m.options, m.id, m.tick_at,
        case when m.dependencies is not null then 'all_success' end, m.dependencies
    from clock, moved m
    where m.verdict is not null
    on conflict (id) do nothing
    returning queue, state
), linked as (
    insert into foliot.links (run_id, upstream_id, tick_at)
    select m.run_id, d.upstream_id, m.tick_at from moved m join foliot.job_dependencies d on d.job_id = m.id
    where m.verdict is not null and m.dependencies is not null
), making_room as (
    update foliot.runs r
    set cancel = jsonb_build_object(
        'reason', 'overlap', 'message', 'run ' || m.run_id || ' of the next tick takes its place',
        'is_forced', m.overlap = 'terminate_other'
    )
    from moved m
    where r.job_id = m.id and m.blocking_id is not null and m.verdict is not null
        and m.overlap in ('cancel_other', 'terminate_other')
    returning r.worker_id
), overlapped as (
    insert into foliot.ticks (job_id, tick_at, noted_at, reason, blocked_by)
    select m.id, m.tick_at, clock.at, case
            when exists (
                select from foliot.runs b
                where b.id = m.blocking_id and b.tick_at < m.tick_at and b.created_at > m.due_at
                    and b.due_at <> b.created_at
            ) then 'missed'
            else 'overlap'
        end, m.blocking_id
    from clock, moved m
    where m.tick_at is not null and m.verdict is null
), noted as (
    insert into foliot.ticks (job_id, tick_at, until_at, noted_at, reason)
    select m.id, to_timestamp(n.tick), to_timestamp(n.until), clock.at, n.reason
    from clock, jsonb_to_recordset(:notes::jsonb) as n (job_id uuid, version bigint, expected bigint, tick bigint,
        until bigint, reason text)
    join moved m on m.id = n.job_id and m.version = n.version and m.expected_at = to_timestamp(n.expected)
)
select array(select id from moved), (select count(*) from fired), array(select id from moved where fire_at is null),
    array(select distinct queue from fired where state = 'ready'),
    array(select worker_id from making_room where worker_id is not null), exists (select from making_room)

-- name: sleep_until(fire)
-- Keeps the transaction that fires ahead of an instant open until it has come.
select pg_sleep(greatest(0, extract(epoch from to_timestamp(:fire::bigint) - clock_timestamp())))

-- name: release_held(scheduler_id, shards, epochs, now)
-- held -> ready, or on to its limits: the oldest held run of each job whose other runs have ended. Only the shard's
-- owner does it, or two would start at once. A deleted job has no shard any more; what it has left is the business of
-- the first one's owner.
with mine as (
    select s.id from foliot.shards s
    join unnest(:shards::bigint[], :epochs::bigint[]) as e (id, epoch) on s.id = e.id and s.epoch = e.epoch
    where s.owner_id = :scheduler_id::uuid and s.expires_at > coalesce(:now::timestamptz, clock_timestamp())
    for share of s
), next as (
    select distinct on (r.job_id) r.id
    from foliot.runs r left join foliot.jobs j on j.id = r.job_id join mine on mine.id = coalesce(j.shard, 0)
    where r.state = 'held' and r.held_by = 'overlap' and r.cancel is null
        and not exists (select from foliot.runs other
            where other.job_id = r.job_id and (other.state <> 'held' or other.held_by <> 'overlap'))
    order by r.job_id, r.tick_at
)
update foliot.runs
set state = case when foliot.has_limits(options) then 'held' else 'ready' end,
    held_by = case when foliot.has_limits(options) then 'limit' end
where id = any (array(select id from next)) and held_by = 'overlap' and cancel is null
returning queue

-- name: insert_triggered_run(run_id, job_id, aging, now, finished_from)
-- A run by hand, beside the schedule. Sent again after a lost answer, it finds the run that it made, live or finished
-- (:finished_from: since when), and makes no other. A tick that is being fired ahead of its instant is waited for: it
-- did not know of this run.
with job as (
    select * from foliot.jobs where id = :job_id::uuid for share
), made as (
    insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload,
        options, job_id, tick_at)
    select :run_id::uuid, at, at, (extract(epoch from at) * 1000000)::bigint - j.priority * :aging::bigint, j.priority,
        case when foliot.has_limits(j.options) then 'held' else 'ready' end,
        case when foliot.has_limits(j.options) then 'limit'
            end, j.queue, j.task, j.name, j.payload, j.options, j.id, at
    from job j, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    where not exists (select from foliot.history h
        where h.id = :run_id::uuid and h.finished_at >= :finished_from::timestamptz)
    on conflict (id) do nothing
)
select queue from job

-- name: insert_backfill(job_id, run_ids, ticks, state, aging, now)
-- Runs for ticks of the past, due when they are asked for: nobody was late with them. One that became a run before,
-- live or finished, is left alone: its id says so.
insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options,
    job_id, tick_at)
select t.run_id, at, at, (extract(epoch from at) * 1000000)::bigint - j.priority * :aging::bigint + t.ordinal,
    j.priority,
    case when foliot.has_limits(j.options) then 'held' else :state::text end,
    case when :state::text = 'held' then 'overlap' when foliot.has_limits(j.options) then 'limit'
        end, j.queue, j.task, j.name, j.payload, j.options, j.id, t.tick_at
from foliot.jobs j, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock,
    unnest(:run_ids::uuid[], :ticks::timestamptz[]) with ordinality as t (run_id, tick_at, ordinal)
where j.id = :job_id::uuid and not exists (select from foliot.history h where h.job_id = j.id and h.tick_at = t.tick_at)
on conflict (id) do nothing
returning tick_at

-- name: remove_fired(job_id, ticks, run_ids)
-- Of what was backfilled in this transaction, that whose run had ended between the look into history and the insert,
-- which can't have met it among the live ones any more.
delete from foliot.runs r
where r.job_id = :job_id::uuid and r.tick_at = any (:ticks::timestamptz[]) and r.id = any (:run_ids::uuid[])
    and exists (select from foliot.history h where h.job_id = r.job_id and h.tick_at = r.tick_at)
returning tick_at

-- name: find_fired(job_id, ticks)
-- Which of these ticks have become a run.
select tick_at from foliot.runs where job_id = :job_id::uuid and tick_at = any (:ticks::timestamptz[])
union all
select tick_at from foliot.history where job_id = :job_id::uuid and tick_at = any (:ticks::timestamptz[])

-- name: list_ticks(job_id, limit)
-- Every tick with what became of it, latest first.
select tick_at, until_at, outcome, run_id, blocked_by, decided_at from (
    select tick_at, null::timestamptz as until_at, state as outcome, id as run_id, null::uuid as blocked_by,
        created_at as decided_at
    from foliot.runs where job_id = :job_id::uuid
    union all
    select tick_at, null, state, id, null, created_at from foliot.history where job_id = :job_id::uuid
    union all
    select tick_at, until_at, reason, null, blocked_by, noted_at from foliot.ticks where job_id = :job_id::uuid
) as t
order by tick_at desc limit :limit::bigint
