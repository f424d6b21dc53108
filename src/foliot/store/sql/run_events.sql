-- What happens to runs, for those who follow it. Asked twice a second while somebody does, and not at all while nobody
-- does.

-- name: ending_horizon(now, hold_seconds)
-- Whatever ended before this instant is visible to a statement that comes after this one, so that endings can be told
-- in order and once. Who is about to end a run holds a lock on history, took it before it read the clock, and began no
-- earlier than it says. Somebody who takes longer than :hold_seconds seconds is not waited for. now() is from before
-- the look at the locks, which is what makes it safe.
select coalesce(:now::timestamptz, greatest(now() - :hold_seconds::float8 * interval '1 second', least(now(), (
    select min(coalesce(a.xact_start, '-infinity'))
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.relation = 'foliot.history'::regclass and l.mode = 'RowExclusiveLock' and l.pid <> pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())
))))

-- name: list_endings(after_at, after_id, until, limit)
-- Those after a place in the order of finishing, up to an instant.
select id, name, task, queue, state, reason, attempt, token, job_id, parent_id, step, options -> 'tags' as tags,
    error -> 'kind' as kind, to_jsonb(left(error ->> 'message', 500)) as message, finished_at
from foliot.history
where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
    and finished_at < :until::timestamptz
order by finished_at, id limit :limit::bigint

-- name: list_running(limit)
-- A sample of what runs now.
select id, name, task, queue, state, null::text, attempt, token, job_id, parent_id, step, options -> 'tags' as tags,
    null::jsonb, null::jsonb,
    started_at
from foliot.runs where state = 'running' limit :limit::bigint

-- name: find_changes(run_ids, finished_from, now)
-- Where these runs stand now, live or finished.
select id, name, task, queue, state, null::text as reason, attempt, token, job_id, parent_id, step,
    options -> 'tags' as tags, null::jsonb as kind,
    null::jsonb as message, case when state = 'running' then started_at else coalesce(:now::timestamptz,
        clock_timestamp()) end
from foliot.runs where id = any (:run_ids::uuid[])
union all
select id, name, task, queue, state, reason, attempt, token, job_id, parent_id, step, options -> 'tags',
    error -> 'kind',
    to_jsonb(left(error ->> 'message', 500)), finished_at
from foliot.history where id = any (:run_ids::uuid[]) and finished_at >= :finished_from::timestamptz
