-- The concurrency keys, rate keys and fairness keys of the runs of one queue.

-- name: concurrency_keys(queue, scan, walk, head, most, limit)
-- Keys of its running and first ready runs, and keys that runs of the queue wait for. The waiting runs are found by a
-- walk along all such keys, looking at the first :head runs of each. Counts stop at :most.
with recursive running as materialized (
    select queue, options from foliot.runs where state = 'running' limit :scan::bigint
), walked (key, place) as (
    (
        select options #>> '{concurrency,key}', 1 from foliot.runs
        where held_by = 'limit' and options #>> '{concurrency,key}' is not null
        order by options #>> '{concurrency,key}' limit 1
    )
    union all
    select (
        select options #>> '{concurrency,key}' from foliot.runs
        where held_by = 'limit' and options #>> '{concurrency,key}' > walked.key
        order by options #>> '{concurrency,key}' limit 1
    ), place + 1
    from walked where walked.key is not null and place < :walk::bigint
), found as materialized (
    select options #>> '{concurrency,key}' as key, (options #>> '{concurrency,limit}')::bigint as most
    from running where queue = :queue::text and options #>> '{concurrency,key}' is not null
    union all
    select options #>> '{concurrency,key}', (options #>> '{concurrency,limit}')::bigint from (
        select options from foliot.runs where state = 'ready' and queue = :queue::text order by rank limit :scan::bigint
    ) as first
    where options #>> '{concurrency,key}' is not null
    union all
    select w.key, (h.options #>> '{concurrency,limit}')::bigint from walked w cross join lateral (
        select r.queue, r.options from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = w.key order by r.rank limit :head::bigint
    ) as h
    where w.key is not null and h.queue = :queue::text
)
select k.key, k.most, (
    select count(*) from (
        select from foliot.runs r
        where r.options #>> '{concurrency,key}' = k.key and r.state in ('ready', 'running') limit :most::bigint
    ) as holding
) as taken, (
    select count(*) from (
        select from foliot.runs r where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = k.key
        limit :most::bigint
    ) as lined_up
) as waiting
from (select key, max(most) as most from found group by key) as k
order by waiting desc, taken desc, k.key limit :limit::bigint

-- name: rate_keys(queue, walk, head, most, limit, now)
-- Rate keys that runs of the queue wait for, found by a walk along all such keys. A key for which nothing waits holds
-- nobody back, and is not listed.
with recursive clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), walked (key, place) as (
    (
        select options #>> '{rate,key}', 1 from foliot.runs
        where held_by = 'limit' and options #>> '{rate,key}' is not null order by options #>> '{rate,key}' limit 1
    )
    union all
    select (
        select options #>> '{rate,key}' from foliot.runs
        where held_by = 'limit' and options #>> '{rate,key}' > walked.key order by options #>> '{rate,key}' limit 1
    ), place + 1
    from walked where walked.key is not null and place < :walk::bigint
), found as materialized (
    select w.key, max((h.options #>> '{rate,limit}')::bigint) as most,
        max((h.options #>> '{rate,period_seconds}')::float8) as period_seconds
    from walked w cross join lateral (
        select r.queue, r.options from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{rate,key}' = w.key order by r.rank limit :head::bigint
    ) as h
    where w.key is not null and h.queue = :queue::text
    group by w.key
)
select f.key, f.most, f.period_seconds, s.started, s.free_at, (
    select count(*) from (
        select from foliot.runs r where r.held_by = 'limit' and r.options #>> '{rate,key}' = f.key limit :most::bigint
    ) as lined_up
) as waiting
from found f cross join clock cross join lateral (
    select count(*) as started, min(started_at) + f.period_seconds * interval '1 second' as free_at from (
        select started_at from foliot.rate_starts
        where rate_key = f.key and started_at > clock.at - f.period_seconds * interval '1 second'
        order by started_at limit :most::bigint
    ) as recent
) as s
order by waiting desc, f.key limit :limit::bigint

-- name: fairness_keys(queue, scan, walk, most, limit)
-- Keys whose ready runs take turns, with those that run now.
with recursive walked (key, place) as (
    (
        select options ->> 'fairness_key', 1 from foliot.runs
        where state = 'ready' and queue = :queue::text and options ->> 'fairness_key' is not null
        order by options ->> 'fairness_key' limit 1
    )
    union all
    select (
        select options ->> 'fairness_key' from foliot.runs
        where state = 'ready' and queue = :queue::text and options ->> 'fairness_key' > walked.key
        order by options ->> 'fairness_key' limit 1
    ), place + 1
    from walked where walked.key is not null and place < :walk::bigint
), running as materialized (
    select options ->> 'fairness_key' as key, count(*) as number from (
        select queue, options from foliot.runs where state = 'running' limit :scan::bigint
    ) as first
    where queue = :queue::text and options ->> 'fairness_key' is not null group by 1
), keys as (
    select key from walked where key is not null union select key from running
)
select k.key, coalesce(r.number, 0) as running, (
    select count(*) from (
        select from foliot.runs f
        where f.state = 'ready' and f.queue = :queue::text and f.options ->> 'fairness_key' = k.key limit :most::bigint
    ) as lined_up
) as waiting
from keys k left join running r on r.key = k.key
order by waiting desc, running desc, k.key limit :limit::bigint

-- name: ended_lately(queue, seconds, scan, now)
-- How many runs of the queue have ended, among the first :scan of all queues.
select count(*) filter (where queue = :queue::text), count(*) from (
    select queue from foliot.history
    where finished_at >= coalesce(:now::timestamptz, clock_timestamp()) - :seconds::float8 * interval '1 second'
    limit :scan::bigint
) as lately
