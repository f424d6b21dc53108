-- Reads for `foliot doctor`. Each statement reads a bounded number of rows.

-- name: list_live_workers(now, limit)
-- Workers with a valid lease, of all namespaces.
select w.name, w.queues, w.started_at, w.draining_at, extract(epoch from clock.at - w.beat_at)::float8 as silent_seconds
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
join foliot.workers w on w.expires_at > clock.at
order by w.name, w.id limit :limit::bigint

-- name: list_last_failures(limit)
-- Runs that failed for good, the latest first.
select id, task, queue, reason, attempt, finished_at, error ->> 'kind' as kind,
    left(error ->> 'message', 500) as message
from foliot.history where state = 'failed' order by finished_at desc, id desc limit :limit::bigint

-- name: list_exports(now)
-- How far each export has come.
select e.name, e.at, e.expires_at > clock.at as is_running,
    extract(epoch from clock.at - e.at)::float8 as behind_seconds
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock cross join foliot.exports e
order by e.name
