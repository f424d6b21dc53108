-- Worker processes, their leases, and the tasks they announce.

-- name: register_worker(worker_id, name, queues, tasks, ttl_seconds, now, labels)
-- A fresh row for every start of a process.
insert into foliot.workers (id, name, queues, tasks, labels, started_at, beat_at, expires_at)
select :worker_id::uuid, :name::text, :queues::jsonb, :tasks::text[], :labels::jsonb, at, at,
    at + :ttl_seconds::float8 * interval '1 second'
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
on conflict (id) do nothing

-- name: announce_tasks(names, queues, guarantees, tags, now)
-- What a job may name from now on. Ordered, so that workers that start together can't deadlock.
insert into foliot.tasks (name, queue, guarantee, tags, seen_at)
select name, queue, guarantee, tags, coalesce(:now::timestamptz, clock_timestamp())
from unnest(:names::text[], :queues::text[], :guarantees::text[], :tags::jsonb[]) as t (name, queue, guarantee, tags)
order by name
on conflict (name) do update
set queue = excluded.queue, guarantee = excluded.guarantee, tags = excluded.tags, seen_at = excluded.seen_at

-- name: list_tasks
-- The known tasks, and what each declares for its jobs.
select name, queue, tags from foliot.tasks

-- name: beat(worker_id, ttl_seconds, now, ids, tokens, left_running)
-- Renews the lease, and answers which attempts are to end: those of runs that were asked to, and those of runs that are
-- no longer ours; whether the worker is to drain; which of its queues have a limit; and whether it owns a run that it
-- does not hold. The last is how a claim is found that was committed long after its answer got lost. NOT IN, because
-- PostgreSQL hashes its list however long that is.
with renewed as (
    update foliot.workers
    set beat_at = clock.at, expires_at = clock.at + :ttl_seconds::float8 * interval '1 second',
        left_running = :left_running::bigint
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

-- name: remove_worker(worker_id)
-- A clean stop.
delete from foliot.workers where id = :worker_id::uuid

-- name: shorten_leases(now)
-- After the database's clock was set back, leases that were renewed before that end too late, by as much as the clock
-- was moved. A lease that was renewed in the future is one of those: it begins again now, and is as long as it was. The
-- same for what else is counted from now on: starts of a rate, whose keys are looked at again, and open circuits. A
-- second is what clocks may differ by between two sessions. In seconds throughout: a difference in days would be an
-- hour off where daylight saving time begins or ends in between. How far in the future the latest of them was renewed,
-- in seconds; null: nothing was.
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
-- Leases long over. Their claims are dealt with apart, by lose_runs, whether or not this row still exists.
delete from foliot.workers where id = any (array(
    select id from foliot.workers where expires_at < coalesce(:now::timestamptz, clock_timestamp())
    for update skip locked
))

-- name: list_workers(now, worker_id)
-- Those whose lease is in force, with what they run right now.
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
-- It is to take nothing more, once it has heard of it.
update foliot.workers w
set draining_at = coalesce(w.draining_at, clock.at)
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where w.id = :worker_id::uuid and w.expires_at > clock.at
