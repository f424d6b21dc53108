-- Counts runs, queues and nodes. Counts stop at $1.

-- name: list_queues(most, now)
-- Every queue that a worker serves or a task declares, that is limited or paused, or that holds a run. Waiting runs are
-- counted along their index, scheduled ones in the order in which they are due. The oldest run is the oldest of those
-- counted.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), with_ready as (
    (select queue from foliot.runs where state = 'ready' order by queue limit 1)
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > w.queue order by queue limit 1)
    from with_ready w where w.queue is not null
), others as (
    select state, queue from (
        (select state, queue from foliot.runs where state = 'running' limit :most::bigint)
        union all
        (select state, queue from foliot.runs where state = 'scheduled' order by due_at limit :most::bigint)
        union all
        (select state, queue from foliot.runs where state = 'held' limit :most::bigint)
    ) as found
), counted as (
    select queue, count(*) filter (where state = 'running') as running,
        count(*) filter (where state = 'scheduled') as scheduled,
        count(*) filter (where state = 'held') as held
    from others group by queue
), full_counts as (
    select coalesce(array_agg(state), '{}') as states
    from (select state from others group by state having count(*) >= :most::bigint) as f
), working as (
    select q.key as queue, sum(q.value::bigint) as slots, count(*) as workers
    from foliot.workers w cross join jsonb_each_text(w.queues) as q, clock
    where w.expires_at > clock.at and w.draining_at is null group by q.key
), names as (
    select queue from with_ready where queue is not null
    union select queue from counted
    union select queue from working
    union select queue from foliot.tasks
    union select name from foliot.queues
    union select name from foliot.pauses where kind = 'queue'
)
select n.queue, r.ready, extract(epoch from clock.at - r.oldest_at)::float8 as oldest_seconds,
    coalesce(c.running, 0) as running,
    coalesce(c.scheduled, 0) as scheduled, coalesce(c.held, 0) as held, coalesce(w.slots, 0)::bigint as slots,
    coalesce(w.workers, 0) as workers, p.paused_at, p.until_at, p.reason, l.max_running, l.max_depth, f.states
from names n cross join clock cross join full_counts f
cross join lateral (
    select count(*) as ready, min(due_at) as oldest_at
    from (select due_at from foliot.runs where state = 'ready' and queue = n.queue order by rank
        limit :most::bigint) as first
) as r
left join counted c on c.queue = n.queue
left join working w on w.queue = n.queue
left join foliot.queues l on l.name = n.queue
left join lateral (
    select paused_at, until_at, reason from foliot.pauses
    where ((kind = 'queue' and name = n.queue) or kind = 'everything') and (until_at is null or until_at > clock.at)
    order by kind limit 1
) as p on true
order by n.queue

-- name: count_runs(most, first_id, finished_from, namespace)
-- Live runs by state, each along its own index, and the latest finished runs from an id on (:first_id, :finished_from).
select state, count(*) from (
    (select 'waiting' as state from foliot.runs
        where state = 'waiting' and parent_id is null and foliot.namespace_of(queue) = :namespace::text
        limit :most::bigint)
    union all
    (select 'waiting' from foliot.runs
        where state = 'waiting' and parent_id is not null and foliot.namespace_of(queue) = :namespace::text
        limit :most::bigint)
    union all
    (select 'scheduled' from foliot.runs where state = 'scheduled' and foliot.namespace_of(queue) = :namespace::text
        limit :most::bigint)
    union all
    (select 'held' from foliot.runs where state = 'held' and foliot.namespace_of(queue) = :namespace::text
        limit :most::bigint)
    union all
    (select 'ready' from foliot.runs where state = 'ready' and foliot.namespace_of(queue) = :namespace::text
        limit :most::bigint)
    union all
    (select 'running' from foliot.runs where state = 'running' and foliot.namespace_of(queue) = :namespace::text
        limit :most::bigint)
    union all
    (select state from foliot.history
        where id >= :first_id::uuid and finished_at >= :finished_from::timestamptz
            and foliot.namespace_of(queue) = :namespace::text order by id desc limit :most::bigint)
) as found
group by state

-- name: count_nodes(now, namespace)
-- Live workers and scheduler nodes, and the shards that live nodes own.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), living as (
    select w.draining_at, q.slots
    from clock cross join foliot.workers w cross join lateral (
        select sum(value::bigint) as slots from jsonb_each_text(w.queues)
        where :namespace::text is null or foliot.namespace_of(key) = :namespace::text
    ) as q
    where w.expires_at > clock.at and q.slots is not null
)
select
    (select count(*) from living) as workers,
    (select count(*) from living where draining_at is not null) as draining,
    (select coalesce(sum(slots), 0)::bigint from living where draining_at is null) as slots,
    (select count(*) from foliot.schedulers, clock where expires_at > clock.at) as schedulers,
    (select count(*) from foliot.shards) as shards,
    (select count(*) from foliot.shards, clock where owner_id is not null and expires_at > clock.at) as owned_shards,
    clock.at as at
from clock
