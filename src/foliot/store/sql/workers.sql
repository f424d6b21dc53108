-- Worker processes, their leases, and the tasks they announce.

-- name: register_worker
-- A fresh row for every start of a process.
insert into foliot.workers (id, name, queues, tasks, labels, started_at, beat_at, expires_at)
select $1::uuid, $2::text, $3::jsonb, $4::text[], $7::jsonb, at, at, at + $5::float8 * interval '1 second'
from (select coalesce($6::timestamptz, clock_timestamp()) as at) as clock
on conflict (id) do nothing

-- name: announce_tasks
-- What a job may name from now on. Ordered, so that workers that start together can't deadlock.
insert into foliot.tasks (name, queue, guarantee, seen_at)
select name, queue, guarantee, coalesce($4::timestamptz, clock_timestamp())
from unnest($1::text[], $2::text[], $3::text[]) as t (name, queue, guarantee) order by name
on conflict (name) do update set queue = excluded.queue, guarantee = excluded.guarantee, seen_at = excluded.seen_at

-- name: list_tasks
-- The known tasks and the queue each declares.
select name, queue from foliot.tasks

-- name: beat
-- Renews the lease, and answers which attempts are to end: those of runs that were asked to, and those of runs that are no longer ours;
-- whether the worker is to drain; which of its queues have a limit; and whether it owns a run that it does not hold. The last is how a claim
-- is found that was committed long after its answer got lost. NOT IN, because PostgreSQL hashes its list however long that is.
with renewed as (
    update foliot.workers
    set beat_at = clock.at, expires_at = clock.at + $2::float8 * interval '1 second', left_running = $6::bigint
    from (select coalesce($3::timestamptz, clock_timestamp()) as at) as clock
    where id = $1::uuid
    returning draining_at is not null as is_draining, queues
)
select exists (select from renewed), held.id, held.token, held.cancel, exists (select from renewed where is_draining), array(
    select q.name from foliot.queues q, renewed where q.max_running is not null and renewed.queues ? q.name
), exists (
    select from foliot.runs r
    where r.state = 'running' and r.worker_id = $1::uuid and (r.id, r.token) not in (select * from unnest($4::uuid[], $5::bigint[]))
)
from (select) as always left join (
    select h.id, h.token, r.cancel
    from unnest($4::uuid[], $5::bigint[]) as h (id, token)
    left join foliot.runs r on r.id = h.id and r.token = h.token and r.worker_id = $1::uuid
    where r.id is null or r.cancel is not null
) as held on true

-- name: remove_worker
-- A clean stop.
delete from foliot.workers where id = $1::uuid

-- name: remove_dead_workers
-- Leases long over. Their claims are dealt with apart, by lose_runs, whether or not this row still exists.
delete from foliot.workers where id = any (array(
    select id from foliot.workers where expires_at < coalesce($1::timestamptz, clock_timestamp()) for update skip locked
))

-- name: list_workers
-- Those whose lease is in force, with what they run right now.
select w.id, w.name, w.queues, w.tasks, w.labels, w.started_at, w.beat_at, w.draining_at, coalesce(r.running, 0) as running,
    w.left_running,
    extract(epoch from clock.at - w.beat_at)::float8 as silent_seconds, extract(epoch from w.expires_at - w.beat_at)::float8 as ttl_seconds
from (select coalesce($1::timestamptz, clock_timestamp()) as at) as clock
join foliot.workers w on w.expires_at > clock.at
left join (select worker_id, count(*) as running from foliot.runs where state = 'running' group by worker_id) as r on r.worker_id = w.id
where $2::uuid is null or w.id = $2::uuid
order by w.name, w.id

-- name: drain_worker
-- It is to take nothing more, once it has heard of it.
update foliot.workers w
set draining_at = coalesce(w.draining_at, clock.at)
from (select coalesce($2::timestamptz, clock_timestamp()) as at) as clock
where w.id = $1::uuid and w.expires_at > clock.at
