-- Changes of runs, for followers. Read twice a second while anybody follows, and not at all otherwise.

-- name: ending_horizon(now, hold_seconds)
-- Every ending before this time is visible to later statements, so endings can be reported in order and exactly once. A
-- transaction that ends runs locks history before it reads the clock, so it ends them no earlier than its own start. A
-- transaction older than :hold_seconds is not waited for. now() is earlier than the look at the locks, which makes this
-- safe.
select coalesce(:now::timestamptz, greatest(now() - :hold_seconds::float8 * interval '1 second', least(now(), (
    select min(coalesce(a.xact_start, '-infinity'))
    from pg_locks l left join pg_stat_activity a on a.pid = l.pid
    where l.relation = 'foliot.history'::regclass and l.mode = 'RowExclusiveLock' and l.pid <> pg_backend_pid()
        and l.database = (select oid from pg_database where datname = current_database())
))))

-- name: list_endings(after_at, after_id, until, limit)
-- Endings after a position in the order of finishing, up to a time.
select id, name, task, queue, state, reason, attempt, token, job_id, parent_id, step, options -> 'tags' as tags,
    error -> 'kind' as kind, to_jsonb(left(error ->> 'message', 500)) as message, finished_at
from foliot.history
where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
    and finished_at < :until::timestamptz
order by finished_at, id limit :limit::bigint

-- name: list_running(limit)
-- A sample of the running runs.
select id, name, task, queue, state, null::text, attempt, token, job_id, parent_id, step, options -> 'tags' as tags,
    null::jsonb, null::jsonb,
    started_at
from foliot.runs where state = 'running' limit :limit::bigint

-- name: find_changes(run_ids, finished_from, now)
-- The current states of these runs, live or finished.
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
