-- Recurring jobs: created, changed, paused, listed and deleted. Every change is fenced by the version of the job.

-- fragment: job_columns
-- The columns of a job and its calendar.
j.id, j.name, j.task, j.queue, j.priority, j.schedule, j.payload, j.options, j.version, j.runs_left, j.next_at,
    j.fire_at, j.paused_at, j.paused_until, j.paused_reason, j.created_at, j.updated_at, j.shard, j.utc_offset,
    c.version as calendar_version, c.days as calendar

-- name: insert_job(
--     id, next_at, fire_at, shard, priority, runs_left, name, task, queue, schedule, payload, options, created_at,
--     utc_offset, found_under, version, actor
-- )
-- Returns nothing if another job has the name. A repeated insert after a lost answer finds the job itself.
with made as (
    insert into foliot.jobs (
        id, created_at, updated_at, next_at, fire_at, shard, priority, runs_left, name, task, queue, schedule, payload,
        options,
        utc_offset, calendar_version, version
    )
    select :id::uuid, at, at, :next_at::timestamptz, :fire_at::timestamptz, :shard::bigint, :priority::bigint,
        :runs_left::bigint, :name::text, :task::text, :queue::text,
        :schedule::jsonb, :payload::jsonb, :options::jsonb, :utc_offset::bigint, :found_under::bigint,
        :version::bigint
    from (select coalesce(:created_at::timestamptz, clock_timestamp()) as at) as clock
    on conflict do nothing
    returning id, created_at, jsonb_build_object(
        'name', name, 'task', task, 'queue', queue, 'priority', priority, 'schedule', schedule, 'payload', payload,
        'options', options
    ) as definition
), kept as (
    insert into foliot.job_versions (job_id, version, made_at, made_by, definition)
    select id, :version::bigint, created_at, :actor::text, definition from made
)
select created_at from made
union all
select created_at from foliot.jobs where id = :id::uuid

-- name: database_now(now)
-- The time from which the ticks of a new or changed job are counted.
select coalesce(:now::timestamptz, clock_timestamp())

-- name: get_job(job_id, name)
-- By id or by name.
select {{job_columns}}
from foliot.jobs j left join foliot.calendars c on c.name = j.calendar
where j.id = :job_id::uuid or j.name = :name::text

-- name: list_jobs(after_name, limit, namespace)
-- A page in order of name. The names of a namespace are adjacent in the index. Names of the default namespace lie
-- between those of other namespaces; from there, one step skips all jobs of another namespace.
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
select {{job_columns}}
from foliot.jobs j left join foliot.calendars c on c.name = j.calendar
where j.name = any (array(select name from walked where foliot.namespace_of(name) = :namespace::text)) order by j.name

-- name: list_tagged_jobs(after_name, tag, limit, scan, namespace)
-- A page of the jobs with a tag, in order of name. Looks at :scan jobs that have any tag, and reports how far it got.
with scanned as materialized (
    select id, name, options -> 'tags' as tags from foliot.jobs where options ? 'tags' and name > :after_name::text
    order by name limit :scan::bigint
)
select s.count, s.last_name, j.*
from (select count(*) as count, max(name) as last_name from scanned) as s left join (
    select {{job_columns}}
    from scanned join foliot.jobs j on j.id = scanned.id left join foliot.calendars c on c.name = j.calendar
    where scanned.tags ? :tag::text and foliot.namespace_of(j.queue) = :namespace::text order by j.name
    limit :limit::bigint
) as j on true
order by j.name

-- name: list_calendar_jobs(calendar, after_name, limit)
-- A page of the jobs that use a calendar, in order of name.
select {{job_columns}}
from foliot.jobs j join foliot.calendars c on c.name = j.calendar
where j.calendar = :calendar::text and j.name > :after_name::text order by j.name limit :limit::bigint

-- name: list_paused_jobs(after_name, tag, limit, scan, namespace)
-- A page of the paused jobs, all or those with a tag, in order of name. Looks at :scan paused jobs, and reports how far
-- it got.
with scanned as materialized (
    select id, name, options -> 'tags' as tags from foliot.jobs where paused_at is not null and name > :after_name::text
    order by name limit :scan::bigint
)
select s.count, s.last_name, j.*
from (select count(*) as count, max(name) as last_name from scanned) as s left join (
    select {{job_columns}}
    from scanned join foliot.jobs j on j.id = scanned.id left join foliot.calendars c on c.name = j.calendar
    where (:tag::text is null or scanned.tags ? :tag::text) and foliot.namespace_of(j.queue) = :namespace::text
    order by j.name limit :limit::bigint
) as j on true
order by j.name

-- name: match_jobs(pattern, task, queue, is_paused, limit, tag, namespace, whole_name, after_name, scan)
-- The first :limit jobs, in order of name, that match all filters; a null filter matches every job. A whole name
-- (:whole_name) is looked up directly. Otherwise it looks at :scan jobs of the namespace after :after_name, walking as
-- list_jobs does, and reports how far it got.
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
--     first_missed, last_missed, utc_offset, found_under, runs_left, upcoming, actor, kept
-- )
-- Stores a new version, which decides the ticks after now. The cursor moves from where it was read to after now; ticks
-- in between that were due and had not fired are noted. Changes nothing if the cursor has moved meanwhile, or if the
-- next tick has passed, by the new schedule or by the old one (:upcoming). A job without runs left stays ended. A job
-- with dependencies is fired by them only while it has no schedule of its own. The oldest of more than :kept versions
-- is forgotten.
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
    insert into foliot.job_versions (job_id, version, made_at, made_by, definition)
    select id, version, updated_at, :actor::text, definition from changed
), forgotten as (
    delete from foliot.job_versions v using changed
    where v.job_id = changed.id and v.version <= changed.version - :kept::bigint
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

-- name: delete_job(job_id, version, actor, now)
-- Its runs and its versions stay; the last version says who deleted the job and when. If a version is given, the job is
-- deleted only while that version is current.
with deleted as (
    delete from foliot.jobs where id = :job_id::uuid and (:version::bigint is null or version = :version::bigint)
    returning id, version, runs_left
), noted as (
    update foliot.job_versions v
    set deleted_at = coalesce(:now::timestamptz, clock_timestamp()), deleted_by = :actor::text,
        runs_left = deleted.runs_left
    from deleted where v.job_id = deleted.id and v.version = deleted.version
)
select true from deleted

-- name: dependent_jobs(job_id)
-- Some jobs that depend on this one.
select j.name from foliot.job_dependencies d join foliot.jobs j on j.id = d.job_id where d.upstream_id = :job_id::uuid
order by j.name limit 10

-- name: pause_job(job_id, reason, until, now, version, actor)
-- A paused job has no fire_at, so it is in no index and costs nothing. The ticks that it misses are noted when it
-- resumes. A second pause replaces the reason and the end, not the beginning. If a version is given, the job is paused
-- only while that version is current.
update foliot.jobs
set paused_at = coalesce(paused_at, :now::timestamptz, clock_timestamp()), paused_reason = :reason::text,
    paused_until = :until::timestamptz, paused_by = :actor::text,
    fire_at = null
where id = :job_id::uuid and (:version::bigint is null or version = :version::bigint)
returning true

-- name: resume_job(
--     job_id, version, next_at, fire_at, first_missed, last_missed, now, utc_offset, found_under, paused_at,
--     paused_until
-- )
-- Continues with the ticks after now, and notes the missed ones in one row. Resumes only from the pause that was read,
-- because somebody may have prolonged it.
with resumed as (
    update foliot.jobs
    set paused_at = null, paused_until = null, paused_reason = null, paused_by = null, next_at = :next_at::timestamptz,
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

-- name: jobs_to_resume(now)
-- Jobs whose pause has expired.
select id from foliot.jobs where paused_until <= (select coalesce(:now::timestamptz, clock_timestamp())) limit 1000

-- name: insert_triggered_run(run_id, job_id, aging, now, finished_from, previous, following)
-- A run outside the schedule, for `trigger`. A repeated insert after a lost answer finds the first run, live or
-- finished (:finished_from: since when). It waits for a tick that is being fired ahead of its time, because that firing
-- did not see this run.
with job as (
    select * from foliot.jobs where id = :job_id::uuid for share
), made as (
    insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload,
        options, job_id, tick_at)
    select :run_id::uuid, at, at, (extract(epoch from at) * 1000000)::bigint - j.priority * :aging::bigint, j.priority,
        case when foliot.has_limits(j.options) then 'held' else 'ready' end,
        case when foliot.has_limits(j.options) then 'limit'
            end, j.queue, j.task, j.name, j.payload,
        foliot.with_tick(j.options, extract(epoch from at)::float8, :previous::bigint, :following::bigint, 'trigger',
            j.schedule, j.name, j.id), j.id, at
    from job j, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    where not exists (select from foliot.history h
        where h.id = :run_id::uuid and h.finished_at >= :finished_from::timestamptz)
    on conflict (id) do nothing
)
select queue from job
