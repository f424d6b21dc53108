-- The places up to which endings of runs have been sent to other systems.

-- name: take_export(name, owner, lease_seconds, horizon, now)
-- One process at a time holds an export, and renews its lease with each look. Returns the place to continue from, or no
-- row while another process holds the export. A new export begins at :horizon.
insert into foliot.exports as e (name, at, id, owner, expires_at)
values (:name::text, :horizon::timestamptz, '00000000-0000-0000-0000-000000000000', :owner::uuid,
    coalesce(:now::timestamptz, clock_timestamp()) + :lease_seconds::float8 * interval '1 second')
on conflict (name) do update set owner = excluded.owner, expires_at = excluded.expires_at
where e.owner = excluded.owner or e.expires_at < coalesce(:now::timestamptz, clock_timestamp())
returning e.at, e.id

-- name: advance_export(name, owner, at, id)
-- Fenced by the owner. A process that lost its lease leaves the place to the next one.
update foliot.exports set at = :at::timestamptz, id = :id::uuid where name = :name::text and owner = :owner::uuid

-- name: release_export(name, owner)
-- The next process need not wait for the lease.
update foliot.exports set expires_at = '-infinity' where name = :name::text and owner = :owner::uuid

-- name: list_unexported(after_at, after_id, until, limit)
-- Endings after a place in the order of finishing, up to a time.
select id, name, task, queue, state, reason, attempt, job_id, parent_id, started_at, finished_at
from foliot.history
where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
    and finished_at < :until::timestamptz
order by finished_at, id limit :limit::bigint

-- name: list_traced(after_at, after_id, until, limit)
-- As list_unexported, with everything that the spans of a run tell.
select id, name, task, queue, state, reason, attempt, job_id, parent_id, started_at, finished_at,
    created_at, due_at, token, lost, worker_id, step, upstream, rerun_of, tick_at,
    options ->> 'traceparent' as traceparent, options ->> 'notifies' as notifies,
    options #>> '{concurrency,key}' as concurrency_key, options #>> '{rate,key}' as rate_key,
    error ->> 'kind' as error_kind, left(error ->> 'message', 500) as error_message
from foliot.history
where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
    and finished_at < :until::timestamptz
order by finished_at, id limit :limit::bigint

-- name: list_earlier_attempts(run_ids, finished_from)
-- The attempts of these runs before the last one.
select run_id, token, attempt, worker_id, started_at, finished_at, outcome, error ->> 'kind',
    left(error ->> 'message', 500)
from foliot.attempts
where run_id = any (:run_ids::uuid[]) and finished_at >= :finished_from::timestamptz
order by run_id, token

-- name: find_open_circuits(tasks)
-- Since when the circuits of these tasks are open.
select task, updated_at from foliot.circuits where open_until is not null and task = any (:tasks::text[])

-- name: happening_horizon(now, hold_seconds)
-- As ending_horizon, for everything that list_happenings reads.
select coalesce(:now::timestamptz, greatest(now() - :hold_seconds::float8 * interval '1 second', least(now(), (
    select min(coalesce(a.xact_start, '-infinity'))
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.relation in ('foliot.history'::regclass, 'foliot.attempts'::regclass, 'foliot.ticks'::regclass)
        and l.mode = 'RowExclusiveLock' and l.pid <> pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())
))))

-- name: list_happenings(after_at, after_id, until, limit)
-- Ends of runs, attempts before the last one, and ticks that did not become a run, after a place in the order of time.
-- An attempt comes before the end of its run, because its transaction did. :until bounds how much is sorted for a page.
with happened as (
    (
        select finished_at as at, id as place_id, 'run' as subject, id, token, state as outcome, reason, attempt,
            worker_id, started_at, null::timestamptz as tick_at, null::timestamptz as until_at,
            null::uuid as blocked_by, error
        from foliot.history
        where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
            and finished_at < :until::timestamptz
        order by 1, 2 limit :limit::bigint
    )
    union all
    (
        select finished_at, md5(run_id::text || ' ' || token)::uuid, 'attempt', run_id, token, outcome, null, attempt,
            worker_id, started_at, null, null, null, error
        from foliot.attempts
        where finished_at >= :after_at::timestamptz and finished_at < :until::timestamptz
            and (finished_at, md5(run_id::text || ' ' || token)::uuid) > (:after_at::timestamptz, :after_id::uuid)
        order by 1, 2 limit :limit::bigint
    )
    union all
    (
        select noted_at, md5(job_id::text || ' ' || extract(epoch from tick_at) || reason)::uuid, 'tick', job_id, 0,
            reason, reason, null, null, null, tick_at, until_at, blocked_by, null
        from foliot.ticks
        where noted_at >= :after_at::timestamptz and noted_at < :until::timestamptz
            and (noted_at, md5(job_id::text || ' ' || extract(epoch from tick_at) || reason)::uuid)
                > (:after_at::timestamptz, :after_id::uuid)
        order by 1, 2 limit :limit::bigint
    )
), page as (
    select * from happened order by at, place_id limit :limit::bigint
)
select p.at, p.place_id, p.subject, p.id, p.token, p.outcome, p.reason, p.attempt, p.worker_id, p.started_at,
    coalesce(p.tick_at, r.tick_at) as tick_at, p.until_at, p.blocked_by, p.error ->> 'kind' as error_kind,
    left(p.error ->> 'message', 500) as error_message, coalesce(r.name, j.name) as name,
    coalesce(r.task, j.task) as task, coalesce(r.queue, j.queue) as queue, coalesce(r.job_id, j.id) as job_id,
    r.parent_id, r.step, r.rerun_of, coalesce(r.tags, j.options -> 'tags') as tags, r.created_at, r.due_at
from page p
left join lateral (
    (
        select name, task, queue, job_id, parent_id, step, rerun_of, tick_at, options -> 'tags' as tags, created_at,
            due_at
        from foliot.history h where p.subject <> 'tick' and h.id = p.id and h.finished_at >= p.at
    )
    union all
    (
        select name, task, queue, job_id, parent_id, step, rerun_of, tick_at, options -> 'tags', created_at, due_at
        from foliot.runs u where p.subject = 'attempt' and u.id = p.id
    )
    limit 1
) r on true
left join foliot.jobs j on p.subject = 'tick' and j.id = p.id
order by p.at, p.place_id

-- name: list_lags(now, fresh_seconds)
-- How far each export is behind. An export that nothing has held lately is switched off.
select name, extract(epoch from coalesce(:now::timestamptz, clock_timestamp()) - at)::float8 from foliot.exports
where expires_at > coalesce(:now::timestamptz, clock_timestamp()) - :fresh_seconds::float8 * interval '1 second'
order by name
