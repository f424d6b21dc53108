-- History on its way into the archive: pages of rows in the order of their time, and how far each kind has come.

-- name: archive_horizon(relation, now, hold_seconds)
-- Every row of this table before this time is visible to later statements, as in ending_horizon: a transaction locks
-- the table before it reads the clock.
select coalesce(:now::timestamptz, greatest(now() - :hold_seconds::float8 * interval '1 second', least(now(), (
    select min(coalesce(a.xact_start, '-infinity'))
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.relation = :relation::regclass and l.mode = 'RowExclusiveLock' and l.pid <> pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())
))))

-- name: archive_runs(after_at, after_id, until, limit, bytes)
-- Ended runs. A page ends after :bytes, because the output and result of a run can be large.
with page as (
    select finished_at as at, id as key, id, name, task, queue, state, reason, priority, attempt, token, lost,
        worker_id, job_id, tick_at, parent_id, step, upstream, rerun_of, fingerprint, options -> 'tags' as tags,
        payload, options, result, error, output, created_at, due_at, started_at, finished_at
    from foliot.history
    where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
        and finished_at < :until::timestamptz
    order by finished_at, id limit :limit::bigint
), measured as (
    select *, sum(coalesce(octet_length(output), 0) + coalesce(octet_length(result::text), 0)
        + coalesce(octet_length(payload::text), 0)) over (order by at, key rows unbounded preceding) as size,
        row_number() over (order by at, key) as place
    from page
)
select at, key, foliot.namespace_of(queue) as namespace, id,
    case when job_id is null then name else foliot.bare(name) end as name, foliot.bare(task) as task,
    foliot.bare(queue) as queue, state, reason, priority, attempt, token, lost, worker_id, job_id, tick_at, parent_id,
    step, upstream, rerun_of, fingerprint, tags, payload, options, result, error, output, created_at, due_at,
    started_at, finished_at
from measured where size <= :bytes::bigint or place = 1 order by at, key

-- name: archive_attempts(after_at, after_id, until, limit, bytes)
-- Attempts before the last one, with the namespace of their run.
with page as (
    select finished_at as at, md5(run_id::text || ' ' || token)::uuid as key, run_id, token, attempt, worker_id,
        outcome, error, output, started_at, finished_at
    from foliot.attempts
    where finished_at >= :after_at::timestamptz and finished_at < :until::timestamptz
        and (finished_at, md5(run_id::text || ' ' || token)::uuid) > (:after_at::timestamptz, :after_id::uuid)
    order by 1, 2 limit :limit::bigint
), measured as (
    select *, sum(coalesce(octet_length(output), 0)) over (order by at, key rows unbounded preceding) as size,
        row_number() over (order by at, key) as place
    from page
)
select m.at, m.key, coalesce(foliot.namespace_of(coalesce(
        (select queue from foliot.runs r where r.id = m.run_id),
        (select queue from foliot.history h where h.id = m.run_id and h.finished_at >= m.finished_at limit 1)
    )), '_unknown') as namespace, m.run_id, m.token, m.attempt, m.worker_id, m.outcome, m.error, m.output,
    m.started_at, m.finished_at
from measured m where size <= :bytes::bigint or place = 1 order by m.at, m.key

-- name: archive_ticks(after_at, after_id, until, limit)
-- Ticks that became no run, with the job that they belong to, if it still exists.
with page as (
    select noted_at as at, md5(job_id::text || ' ' || extract(epoch from tick_at) || reason)::uuid as key, job_id,
        tick_at, until_at, reason, blocked_by, noted_at
    from foliot.ticks
    where noted_at >= :after_at::timestamptz and noted_at < :until::timestamptz
        and (noted_at, md5(job_id::text || ' ' || extract(epoch from tick_at) || reason)::uuid)
            > (:after_at::timestamptz, :after_id::uuid)
    order by 1, 2 limit :limit::bigint
)
select p.at, p.key, coalesce(foliot.namespace_of(j.queue), '_unknown') as namespace, p.job_id,
    foliot.bare(j.name) as job, p.tick_at, p.until_at, p.reason, p.blocked_by, p.noted_at
from page p left join foliot.jobs j on j.id = p.job_id order by p.at, p.key

-- name: archive_audit(after_at, after_id, until, limit)
-- The audit log.
select at, id as key, namespace, id, actor, actor_namespace, token_id, role, address, request_id, method, path, action,
    target, status, code, at as noted_at
from foliot.audit
where at >= :after_at::timestamptz and (at, id) > (:after_at::timestamptz, :after_id::uuid)
    and at < :until::timestamptz
order by at, id limit :limit::bigint

-- name: take_archives(kinds, starts, location, owner, lease_seconds, now)
-- One process at a time archives, and renews its lease with each look. Returns the place of each kind, or no row while
-- another process archives.
insert into foliot.archives as a (kind, location, at, id, owner, expires_at)
select kind, :location::text, at, '00000000-0000-0000-0000-000000000000', :owner::uuid,
    coalesce(:now::timestamptz, clock_timestamp()) + :lease_seconds::float8 * interval '1 second'
from unnest(:kinds::text[], :starts::timestamptz[]) as k (kind, at)
order by kind
on conflict (kind) do update
set owner = excluded.owner, expires_at = excluded.expires_at, location = excluded.location
where a.owner = excluded.owner or a.expires_at < coalesce(:now::timestamptz, clock_timestamp())
returning a.kind, a.at, a.id

-- name: release_archives(owner)
-- The next process need not wait for the lease.
update foliot.archives set expires_at = '-infinity' where owner = :owner::uuid

-- name: note_archive_failure(owner, error, now)
-- Since when the archive has not answered, and how.
update foliot.archives
set failing_since = coalesce(failing_since, :now::timestamptz, clock_timestamp()), error = :error::text
where owner = :owner::uuid

-- name: note_archive_success(owner)
-- The archive answers again.
update foliot.archives set failing_since = null, error = null where owner = :owner::uuid and failing_since is not null

-- name: advance_archive(kind, owner, at, id, day, names, namespaces, rows, bytes, sha256s, first_ids, last_ids)
-- Records objects that the archive has, together with the place behind them. Fenced by the owner. An object that was
-- written before has the same name and replaces itself.
with advanced as (
    update foliot.archives set at = :at::timestamptz, id = :id::uuid
    where kind = :kind::text and owner = :owner::uuid returning kind
), recorded as (
    insert into foliot.archived_objects (kind, day, name, namespace, rows, bytes, sha256, first_id, last_id)
    select a.kind, :day::date, o.name, o.namespace, o.rows, o.bytes, o.sha256, o.first_id, o.last_id
    from advanced a cross join unnest(:names::text[], :namespaces::text[], :rows::bigint[], :bytes::bigint[],
        :sha256s::text[], :first_ids::uuid[], :last_ids::uuid[])
        as o (name, namespace, rows, bytes, sha256, first_id, last_id)
    on conflict (kind, day, name) do update
    set namespace = excluded.namespace, rows = excluded.rows, bytes = excluded.bytes, sha256 = excluded.sha256,
        first_id = excluded.first_id, last_id = excluded.last_id
)
select count(*) from advanced

-- name: list_archived_objects(kind, day)
-- The objects of a day that is not complete.
select name, namespace, rows, bytes, sha256, first_id, last_id from foliot.archived_objects
where kind = :kind::text and day = :day::date order by name

-- name: confirm_archived_day(kind, owner, day, next_day)
-- The archive has all of the day, and the list of its objects. The place moves to the next day.
with advanced as (
    update foliot.archives a
    set at = :next_day::timestamptz, id = '00000000-0000-0000-0000-000000000000'
    where a.kind = :kind::text and a.owner = :owner::uuid returning a.kind, a.location
), gone as (
    delete from foliot.archived_objects o using advanced a where o.kind = a.kind and o.day = :day::date returning o.*
), summed as (
    select kind, day, namespace, sum(rows)::bigint as rows, count(*) as objects, min(first_id::text)::uuid as first_id,
        max(last_id::text)::uuid as last_id
    from gone group by kind, day, namespace
), confirmed as (
    insert into foliot.archived_days (kind, day, namespace, rows, objects, first_id, last_id, location)
    select s.kind, s.day, s.namespace, s.rows, s.objects, s.first_id, s.last_id, a.location
    from summed s cross join advanced a
    on conflict (kind, day, namespace) do update
    set rows = excluded.rows, objects = excluded.objects, first_id = excluded.first_id, last_id = excluded.last_id,
        location = excluded.location
)
select count(*) from advanced

-- name: list_archives(now)
-- How far each kind is archived.
select kind, location, at, expires_at > coalesce(:now::timestamptz, clock_timestamp()) as is_running, failing_since,
    error
from foliot.archives order by kind

-- name: archived_rows(kind, day)
-- The rows of a complete day in the archive.
select coalesce(sum(rows), 0)::bigint from foliot.archived_days where kind = :kind::text and day = :day::date

-- name: reopen_archive(kind, at)
-- Rows came late, after their day was complete, as when a clock was set back: the kind is archived again from that day
-- on. The names of the objects stay the same.
with reopened as (
    update foliot.archives set at = :at::timestamptz, id = '00000000-0000-0000-0000-000000000000'
    where kind = :kind::text and at > :at::timestamptz
), forgotten as (
    delete from foliot.archived_objects where kind = :kind::text and day >= (:at::timestamptz at time zone 'utc')::date
)
delete from foliot.archived_days where kind = :kind::text and day >= (:at::timestamptz at time zone 'utc')::date

-- name: find_archived(namespace, run_id, from_day, before, limit)
-- The days on which a run that is not in the database may have ended.
select day, location from foliot.archived_days
where kind = 'runs' and namespace = :namespace::text and day >= :from_day::date and day < :before::date
    and first_id <= :run_id::uuid and last_id >= :run_id::uuid
order by day limit :limit::bigint

-- name: forget_archives
-- Ends the archive. From now on days are dropped at the end of their retention. The list of complete days stays.
with forgotten as (
    delete from foliot.archived_objects
)
delete from foliot.archives
