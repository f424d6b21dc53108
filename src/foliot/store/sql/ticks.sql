-- Ticks of recurring jobs: fired, and shown. Every statement that moves a cursor is fenced by the version of the job
-- and by the scheduler's epoch.

-- name: due_jobs(shards, limit, ahead_seconds, now)
-- Jobs of these shards that are due up to a little ahead of now, longest due first.
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

-- name: fire_ticks(
--     scheduler_id, aging, now, shards, epochs, buffer_max, job_ids, versions, job_shards, overlaps, expected_ticks,
--     next_ticks, next_fires, utc_offsets, ticks, run_ids, notes, is_ahead, fires, previous_ticks, following_ticks
-- )
-- Moves cursors, inserts runs and notes the ticks that became no run, in one transaction, and only under epochs that
-- are still in force. The cursor must be where it was read, so a tick that another node has handled matches nothing,
-- nor does one that is not due yet. The version must be the one that was read, because it holds the overlap policy.
--
-- A run is due at its tick's time, jitter included (:fires), however late it is inserted: lateness is measured from
-- there. It is ranked by that time too, but a run that catches up gets at most a minute's lead over runs that are due
-- now. Runs that must make room for a new run are marked. If the blocking run was itself inserted late, after this
-- tick's time, the tick was missed rather than overlapped.
--
-- Ahead of its time (:is_ahead), a tick fires only if no other run is live, because a live run may end before then. The
-- shards need no lock: the lock on the job's row makes another firing wait, which then finds that the cursor has moved.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), mine as (
    select s.id from foliot.shards s
    join unnest(:shards::bigint[], :epochs::bigint[]) as e (id, epoch) on s.id = e.id and s.epoch = e.epoch, clock
    where s.owner_id = :scheduler_id::uuid and s.expires_at > clock.at
), decided as materialized (
    select g.*, open.blocking_id, case when g.tick_at is not null then
            foliot.overlap_verdict(g.overlap, open.blocking_id is not null, open.held, :buffer_max::bigint)
        end as verdict
    from (
        select job_id, version, shard, overlap, to_timestamp(expected) as expected_at, to_timestamp(next) as next_at,
            to_timestamp(fire) as fire_at, utc_offset, to_timestamp(tick) as tick_at, run_id,
            to_timestamp(due) as due_at, tick, previous, following
        from unnest(
            :job_ids::text::uuid[], :versions::text::bigint[], :job_shards::text::bigint[], :overlaps::text::text[],
            :expected_ticks::text::bigint[], :next_ticks::text::bigint[],
            :next_fires::text::bigint[], :utc_offsets::text::bigint[], :ticks::text::bigint[], :run_ids::text::uuid[],
            :fires::text::bigint[], :previous_ticks::text::bigint[], :following_ticks::text::bigint[]
        ) as t (
            job_id, version, shard, overlap, expected, next, fire, utc_offset, tick, run_id, due, previous, following
        )
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
        d.verdict, d.blocking_id, d.verdict = 'ready' and foliot.has_limits(j.options) as is_limited, j.schedule,
        d.tick, d.previous, d.following, jsonb_array_length(j.schedule -> 'after') as dependencies
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
        m.queue, m.task, m.name, m.payload,
        foliot.with_tick(m.options, m.tick, m.previous, m.following, null, m.schedule, m.name, m.id), m.id, m.tick_at,
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
-- Keeps the transaction that fires ahead of a time open until then.
select pg_sleep(greatest(0, extract(epoch from to_timestamp(:fire::bigint) - clock_timestamp())))

-- name: list_ticks(job_id, since, until, after_at, after_id, limit)
-- Ticks and their outcomes, the latest first. A tick that was noted and run later has two rows.
select tick_at, until_at, outcome, run_id, blocked_by, decided_at from (
    select tick_at, null::timestamptz as until_at, state as outcome, id as run_id, null::uuid as blocked_by,
        created_at as decided_at
    from foliot.runs where job_id = :job_id::uuid
    union all
    select tick_at, null, state, id, null, created_at from foliot.history where job_id = :job_id::uuid
    union all
    select tick_at, until_at, reason, null, blocked_by, noted_at from foliot.ticks where job_id = :job_id::uuid
) as t
where tick_at >= coalesce(:since::timestamptz, '-infinity') and tick_at < coalesce(:until::timestamptz, 'infinity')
    and tick_at <= coalesce(:after_at::timestamptz, 'infinity')
    and (:after_at::timestamptz is null or (tick_at, coalesce(run_id, '00000000-0000-0000-0000-000000000000'))
        < (:after_at::timestamptz, :after_id::uuid))
order by tick_at desc, coalesce(run_id, '00000000-0000-0000-0000-000000000000') desc limit :limit::bigint

-- name: ticks_by_cell(job_id, since, until, cell_seconds, scan)
-- The latest ticks of a time, at most :scan of them, in cells of equal length: how often each outcome came, and the
-- latest run and blocker. Rows that sum up ticks have cells of their own, with the end of the last one. The one before
-- :since may reach into the time. `cut_at` is the oldest tick that was read, if there are more.
with inside as materialized (
    select tick_at, until_at, outcome, run_id, blocked_by from (
        select tick_at, null::timestamptz as until_at, state as outcome, id as run_id, null::uuid as blocked_by
        from foliot.runs where job_id = :job_id::uuid
        union all
        select tick_at, null, state, id, null from foliot.history where job_id = :job_id::uuid
        union all
        select tick_at, until_at, reason, null, blocked_by from foliot.ticks where job_id = :job_id::uuid
    ) as t
    where tick_at >= :since::timestamptz and tick_at < :until::timestamptz
    order by tick_at desc limit :scan::bigint
), reaching as (
    select * from (
        select tick_at, until_at, reason as outcome, null::uuid as run_id, blocked_by from foliot.ticks
        where job_id = :job_id::uuid and tick_at < :since::timestamptz order by tick_at desc limit 1
    ) as before
    where until_at >= :since::timestamptz
), placed as (
    select t.*, floor(extract(epoch from greatest(tick_at, :since::timestamptz) - :since::timestamptz)
        / :cell_seconds::float8) as cell
    from (select * from inside union all select * from reaching) as t
)
select min(tick_at) as first, max(tick_at) as last, max(until_at) as until_at, outcome, count(*) as count,
    (array_agg(run_id order by tick_at desc))[1] as run_id,
    (array_agg(blocked_by order by tick_at desc) filter (where blocked_by is not null))[1] as blocked_by,
    (select case when count(*) >= :scan::bigint then min(tick_at) end from inside) as cut_at
from placed group by cell, until_at is null, outcome order by cell, first, outcome

-- name: list_durations(job_id, limit)
-- How long the latest runs of a job took, the latest first.
select id, tick_at, state, extract(epoch from finished_at - started_at)::float8 as seconds from foliot.history
where job_id = :job_id::uuid and started_at is not null order by tick_at desc limit :limit::bigint

-- name: count_days(job_id, since, zone, scan)
-- The latest ticks by day and outcome, at most :scan of them, and the oldest of these if there are more. A row that
-- sums up ticks counts once on each of its days.
with latest as materialized (
    select tick_at, until_at, outcome from (
        select tick_at, null::timestamptz as until_at, state as outcome from foliot.runs
        where job_id = :job_id::uuid
        union all
        select tick_at, null, state from foliot.history where job_id = :job_id::uuid
        union all
        select tick_at, until_at, reason from foliot.ticks where job_id = :job_id::uuid
    ) as t
    where tick_at >= :since::timestamptz order by tick_at desc limit :scan::bigint
), days as (
    select (tick_at at time zone :zone::text)::date as first, outcome,
        least(
            (coalesce(until_at, tick_at) at time zone :zone::text)::date,
            (tick_at at time zone :zone::text)::date + 366
        ) as last
    from latest
)
select day::date as day, outcome, count(*) as count,
    (select case when count(*) >= :scan::bigint then min(tick_at) end from latest) as cut_at
from days cross join lateral generate_series(first::timestamp, last::timestamp, interval '1 day') as day
group by day, outcome order by day, outcome
