-- The state of the installation once a second, for pages that are open. Each statement reads a bounded number of rows,
-- for all namespaces with a follower at once.

-- name: take_pulse(namespaces, most, scan, now)
-- Counts and workers of each namespace. Ready runs are counted along their index, queue by queue, up to :most in each.
-- Of the running, scheduled and held runs, :scan each are read. A pause of everything, shards without an owner and a
-- read-only database concern all namespaces.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), with_ready as (
    (select queue from foliot.runs where state = 'ready' order by queue limit 1)
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > w.queue order by queue limit 1)
    from with_ready w where w.queue is not null
), ready as (
    select foliot.namespace_of(w.queue) as namespace, sum(r.number)::bigint as number,
        bool_or(r.number >= :most::bigint) as has_more, min(r.oldest_at) as oldest_at
    from with_ready w cross join lateral (
        select count(*) as number, min(due_at) as oldest_at
        from (select due_at from foliot.runs where state = 'ready' and queue = w.queue order by rank
            limit :most::bigint) as first
    ) as r
    where w.queue is not null and foliot.namespace_of(w.queue) = any (:namespaces::text[])
    group by 1
), others as (
    select state, foliot.namespace_of(queue) as namespace from (
        (select state, queue from foliot.runs where state = 'running' limit :scan::bigint)
        union all
        (select state, queue from foliot.runs where state = 'scheduled' order by due_at limit :scan::bigint)
        union all
        (select state, queue from foliot.runs where state = 'held' limit :scan::bigint)
    ) as found
), counted as (
    select namespace, count(*) filter (where state = 'running') as running,
        count(*) filter (where state = 'scheduled') as scheduled, count(*) filter (where state = 'held') as held
    from others group by namespace
), full_counts as (
    select coalesce(array_agg(state), '{}') as states
    from (select state from others group by state having count(*) >= :scan::bigint) as f
), serving as (
    select s.namespace, count(*) as workers, count(*) filter (where w.draining_at is not null) as draining,
        coalesce(sum(s.slots) filter (where w.draining_at is null), 0)::bigint as slots
    from foliot.workers w cross join clock cross join lateral (
        select foliot.namespace_of(key) as namespace, sum(value::bigint) as slots from jsonb_each_text(w.queues)
        group by 1
    ) as s
    where w.expires_at > clock.at group by s.namespace
), pause as (
    select paused_at, until_at, reason, actor from foliot.pauses, clock
    where kind = 'everything' and (until_at is null or until_at > clock.at)
)
select clock.at, n.name, coalesce(r.number, 0), coalesce(r.has_more, false),
    extract(epoch from clock.at - r.oldest_at)::float8, coalesce(c.running, 0), coalesce(c.scheduled, 0),
    coalesce(c.held, 0), f.states, coalesce(s.workers, 0), coalesce(s.draining, 0), coalesce(s.slots, 0),
    (
        select count(*) from foliot.shards where owner_id is null or expires_at <= clock.at
    ) as unowned_shards,
    pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as is_read_only,
    p.paused_at, p.until_at, p.reason, p.actor
from unnest(:namespaces::text[]) as n (name) cross join clock cross join full_counts f
left join ready r on r.namespace = n.name
left join counted c on c.namespace = n.name
left join serving s on s.namespace = n.name
left join pause p on true

-- name: list_changes(since, until, first_id, most)
-- Runs that ended between two times, that started since the first one, and that were created with :first_id or a later
-- id; grouped, with some ids of each group. Of each kind, :most runs are read. The ends are complete if `until` is an
-- ending horizon.
with ended as (
    select 'ended' as kind, state, queue, task, job_id, parent_id, id from foliot.history
    where finished_at >= :since::timestamptz and finished_at < :until::timestamptz
    order by finished_at desc limit :most::bigint
), started as (
    select 'started' as kind, state, queue, task, job_id, parent_id, id from (
        select * from foliot.runs where state = 'running' limit :most::bigint
    ) as running where started_at >= :since::timestamptz
), created as (
    select 'created' as kind, state, queue, task, job_id, parent_id, id from foliot.runs
    where id >= :first_id::uuid order by id desc limit :most::bigint
)
select kind, state, queue, task, job_id, count(*), (array_agg(id))[:20], (array_agg(distinct parent_id)
        filter (where parent_id is not null))[:20] as parents
from (select * from ended union all select * from started union all select * from created) as found
group by kind, state, queue, task, job_id order by count(*) desc

-- name: list_actions(since, most)
-- Changes that people and programs made through the API: the audit log has them all.
select namespace, action, target from foliot.audit
where at >= :since::timestamptz and status < 400 and target is not null
order by at desc limit :most::bigint
