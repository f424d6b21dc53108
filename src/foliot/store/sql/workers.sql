-- Workers, their leases, and the tasks that they announce.

-- name: register_worker(worker_id, name, queues, tasks, ttl_seconds, now, labels, announcement, token_id)
-- A new row for every start of a process.
insert into foliot.workers (id, name, queues, tasks, labels, started_at, beat_at, expires_at, announcement, token_id)
select :worker_id::uuid, :name::text, :queues::jsonb, :tasks::text[], :labels::jsonb, at, at,
    at + :ttl_seconds::float8 * interval '1 second', :announcement::text, :token_id::text
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
on conflict (id) do nothing

-- name: announce_tasks(names, queues, guarantees, tags, announcement, now)
-- Makes the tasks known to submissions. Ordered by name, so that workers that start together can't deadlock.
insert into foliot.tasks (name, queue, guarantee, tags, announcement, seen_at)
select name, queue, guarantee, tags, :announcement::text, coalesce(:now::timestamptz, clock_timestamp())
from unnest(:names::text[], :queues::text[], :guarantees::text[], :tags::jsonb[]) as t (name, queue, guarantee, tags)
order by name
on conflict (name) do update
set queue = excluded.queue, guarantee = excluded.guarantee, tags = excluded.tags, seen_at = excluded.seen_at,
    announcement = excluded.announcement

-- name: list_tasks
-- The known tasks, with the values that each declares for its jobs.
select name, queue, tags, announcement from foliot.tasks

-- name: beat(worker_id, ttl_seconds, now, ids, tokens, left_running, session_id, session_seconds)
-- Renews the lease. Returns the attempts that must end, because their run was cancelled or no longer belongs to this
-- worker; whether the worker is to drain; which of its queues have a limit; and whether it owns a run that it does not
-- hold. The last finds a claim that committed long after its answer got lost. NOT IN, because PostgreSQL hashes a list
-- of any length. With :session_id, the lease may end as soon as the coordinator has lost that entry, but not before the
-- lease that the worker may still trust.
with renewed as (
    update foliot.workers
    set beat_at = clock.at, expires_at = clock.at + :ttl_seconds::float8 * interval '1 second',
        left_running = :left_running::bigint, session_id = :session_id::uuid,
        session_seconds = :session_seconds::float8,
        session_free_at = case when :session_id::uuid is not null then
            case when session_id is null then expires_at else session_free_at end end
    from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
    where id = :worker_id::uuid
    returning draining_at is not null as is_draining, queues
)
select exists (select from renewed), held.id, held.token, held.cancel, exists (select from renewed where is_draining),
    array(
    select q.name from foliot.queues q, renewed where q.max_running is not null and renewed.queues ? q.name
), exists (
    select from foliot.runs r
    where r.state = 'running' and r.worker_id = :worker_id::uuid
        and (r.id, r.token) not in (select * from unnest(:ids::uuid[], :tokens::bigint[]))
)
from (select) as always left join (
    select h.id, h.token, r.cancel
    from unnest(:ids::uuid[], :tokens::bigint[]) as h (id, token)
    left join foliot.runs r on r.id = h.id and r.token = h.token and r.worker_id = :worker_id::uuid
    where r.id is null or r.cancel is not null
) as held on true

-- name: look(worker_id, now, ids, tokens, session_id)
-- The answer of `beat` for a worker that is alive in the coordinator, without a write.
with mine as (
    select draining_at is not null as is_draining, queues from foliot.workers
    where id = :worker_id::uuid and session_id = :session_id::uuid
        and expires_at > coalesce(:now::timestamptz, clock_timestamp())
)
select exists (select from mine), held.id, held.token, held.cancel, exists (select from mine where is_draining),
    array(
    select q.name from foliot.queues q, mine where q.max_running is not null and mine.queues ? q.name
), exists (
    select from foliot.runs r
    where r.state = 'running' and r.worker_id = :worker_id::uuid
        and (r.id, r.token) not in (select * from unnest(:ids::uuid[], :tokens::bigint[]))
)
from (select) as always left join (
    select h.id, h.token, r.cancel
    from unnest(:ids::uuid[], :tokens::bigint[]) as h (id, token)
    left join foliot.runs r on r.id = h.id and r.token = h.token and r.worker_id = :worker_id::uuid
    where r.id is null or r.cancel is not null
) as held on true

-- name: worker_sessions
-- The entries that keep workers alive in the coordinator.
select session_id, session_seconds from foliot.workers where session_id is not null

-- name: end_sessions(session_ids, now)
-- Ends the leases of workers that trust these entries no more. A worker that has renewed its lease without the entry,
-- or with another one, keeps it.
update foliot.workers w set expires_at = clock.at
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where w.session_id = any (:session_ids::uuid[]) and w.session_free_at <= clock.at and w.expires_at > clock.at

-- name: beat_workers(worker_ids, ttls, left_running, holders, ids, tokens, now)
-- `beat` for many workers that work through the API, in one statement. One row for each worker, and one more for each
-- attempt that must end. Locked in order, so that two servers can't deadlock.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), beating as materialized (
    select w.id, b.ttl_seconds, b.left_running
    from unnest(:worker_ids::uuid[], :ttls::float8[], :left_running::bigint[]) as b (id, ttl_seconds, left_running)
    join foliot.workers w on w.id = b.id
    order by w.id for update of w
), renewed as (
    update foliot.workers w
    set beat_at = clock.at, expires_at = clock.at + b.ttl_seconds * interval '1 second', left_running = b.left_running
    from beating b, clock
    where w.id = b.id
    returning w.id, w.draining_at is not null as is_draining
), held as materialized (
    select * from unnest(:holders::uuid[], :ids::uuid[], :tokens::bigint[]) as h (worker_id, id, token)
)
select renewed.id, null::uuid, null::bigint, null::jsonb, renewed.is_draining, exists (
    select from foliot.runs r
    where r.state = 'running' and r.worker_id = renewed.id
        and not exists (select from held h where h.worker_id = renewed.id and h.id = r.id and h.token = r.token)
)
from renewed
union all
select h.worker_id, h.id, h.token, r.cancel, null, null
from held h left join foliot.runs r on r.id = h.id and r.token = h.token and r.worker_id = h.worker_id
where r.id is null or r.cancel is not null

-- name: holder_of(worker_id)
-- The token that a worker was registered with. No row: there is no such worker.
select token_id from foliot.workers where id = :worker_id::uuid

-- name: limited_queues
-- The queues whose running runs are limited.
select name from foliot.queues where max_running is not null

-- name: remove_worker(worker_id, now)
-- A clean shutdown. The worker stays in the list of those that are gone.
with gone as (
    delete from foliot.workers where id = :worker_id::uuid returning id, name, queues, labels, started_at
)
insert into foliot.gone_workers (id, name, queues, labels, started_at, gone_at, is_dead)
select id, name, queues, labels, started_at, coalesce(:now::timestamptz, clock_timestamp()), false from gone
on conflict (id) do nothing

-- name: shorten_leases(now)
-- After the database's clock was set back, older leases would end too late. A lease that was renewed in the future is
-- such a lease: it begins again now, with its original length. The same applies to rate starts, whose keys get a turn,
-- and to open circuits. Up to a second is tolerated, because the clocks of two sessions may differ that much.
--
-- Computed in seconds: a difference in days would be an hour off across a DST change. Returns by how many seconds the
-- clock was set back, or null.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), workers as materialized (
    select w.id, extract(epoch from w.beat_at - clock.at) * interval '1 second' as ahead from foliot.workers w, clock
    where w.beat_at > clock.at + interval '1 second'
    for update of w skip locked
), nodes as materialized (
    select s.id, extract(epoch from s.beat_at - clock.at) * interval '1 second' as ahead from foliot.schedulers s, clock
    where s.beat_at > clock.at + interval '1 second'
    for update of s skip locked
), worker_leases as (
    update foliot.workers w set beat_at = w.beat_at - a.ahead, expires_at = w.expires_at - a.ahead from workers a
    where w.id = a.id
), node_leases as (
    update foliot.schedulers s set beat_at = s.beat_at - n.ahead, expires_at = s.expires_at - n.ahead from nodes n
    where s.id = n.id
), shard_leases as (
    update foliot.shards s set expires_at = s.expires_at - n.ahead from nodes n where s.owner_id = n.id
), starts as (
    update foliot.rate_starts s set started_at = (select at from clock)
    where s.started_at > (select coalesce(:now::timestamptz, clock_timestamp()) + interval '1 second')
    returning s.rate_key
), turns as (
    insert into foliot.turns (kind, key, look_at) select distinct 'rate', rate_key, '-infinity'::timestamptz from starts
), circuits as (
    update foliot.circuits c
    set open_until = c.open_until - extract(epoch from c.updated_at - clock.at) * interval '1 second',
        updated_at = clock.at, probe_at = least(c.probe_at, clock.at)
    from clock where c.updated_at > clock.at + interval '1 second'
)
select extract(epoch from max(ahead))::float8
from (select ahead from workers union all select ahead from nodes) as renewed

-- name: remove_dead_workers(now)
-- Removes workers with an expired lease. lose_runs handles their claims separately, whether or not this row exists.
with gone as (
    delete from foliot.workers where id = any (array(
        select id from foliot.workers where expires_at < coalesce(:now::timestamptz, clock_timestamp())
        for update skip locked
    ))
    returning id, name, queues, labels, started_at
)
insert into foliot.gone_workers as g (id, name, queues, labels, started_at, gone_at, is_dead)
select id, name, queues, labels, started_at, coalesce(:now::timestamptz, clock_timestamp()), true from gone order by id
on conflict (id) do update
set name = excluded.name, queues = excluded.queues, labels = excluded.labels, started_at = excluded.started_at

-- name: list_workers(now, worker_id)
-- Live workers, with the number of runs that each runs now.
select w.id, w.name, w.queues, w.tasks, w.labels, w.started_at, w.beat_at, w.draining_at,
    coalesce(r.running, 0) as running,
    w.left_running,
    extract(epoch from clock.at - w.beat_at)::float8 as silent_seconds,
    extract(epoch from w.expires_at - w.beat_at)::float8 as ttl_seconds
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
join foliot.workers w on w.expires_at > clock.at
left join (select worker_id, count(*) as running from foliot.runs where state = 'running'
    group by worker_id) as r on r.worker_id = w.id
where :worker_id::uuid is null or w.id = :worker_id::uuid
order by w.name, w.id

-- name: drain_worker(worker_id, now)
-- The worker learns of it at its next heartbeat, and then claims nothing more.
update foliot.workers w
set draining_at = coalesce(w.draining_at, clock.at)
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where w.id = :worker_id::uuid and w.expires_at > clock.at

-- name: drain_workers(worker_ids, now)
-- Several at once.
update foliot.workers w
set draining_at = coalesce(w.draining_at, clock.at)
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where w.id = any (:worker_ids::uuid[]) and w.expires_at > clock.at

-- name: runs_of_workers(worker_ids, namespace, limit)
-- What these workers run now, along the index of running runs.
select r.worker_id, r.id, r.name, r.task, r.queue, r.attempt, r.started_at
from (
    select worker_id, id, name, task, queue, attempt, started_at from foliot.runs
    where state = 'running' and worker_id = any (:worker_ids::uuid[]) limit :limit::bigint
) as r
where foliot.namespace_of(r.queue) = :namespace::text
order by r.started_at, r.id
