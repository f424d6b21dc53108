-- The circuit breaker: after several failures in a row a task is not claimed for a while; then one run, the probe,
-- decides.

-- name: record_failures(tasks, failures, bounds, open_seconds, now)
-- Counts failures in a row. The circuit opens when they reach the bound, and opens again when its probe fails.
insert into foliot.circuits as c (task, failures, open_until, updated_at)
select t.task, t.failures, case when t.failures >= t.most then clock.at + t.seconds * interval '1 second' end, clock.at
from unnest(:tasks::text[], :failures::bigint[], :bounds::bigint[], :open_seconds::float8[]) as t (task, failures, most,
    seconds),
    (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
order by t.task
on conflict (task) do update
set failures = c.failures + excluded.failures, probe_id = null, updated_at = excluded.updated_at,
    open_until = case
        when c.open_until is not null and c.probe_id is null then c.open_until
        when c.failures + excluded.failures >= (select u.most
            from unnest(:tasks::text[], :bounds::bigint[]) as u (task, most) where u.task = c.task)
            then excluded.updated_at + (
                select u.seconds from unnest(:tasks::text[], :open_seconds::float8[]) as u (task, seconds)
                where u.task = c.task
            ) * interval '1 second'
    end
returning task, open_until is not null

-- name: record_successes(tasks, run_ids)
-- A success resets the count, and closes the circuit if it was the probe's. Nothing is written for a healthy task.
delete from foliot.circuits where task = any (:tasks::text[]) and (open_until is null
    or probe_id = any (:run_ids::uuid[])) returning task

-- name: send_probes(now, probe_seconds, head)
-- Marks one run of each task whose circuit has been open long enough. A probe stays while it is running, and for a
-- short time (:probe_seconds) while nothing prevents its start. It is replaced if it was lost, parked, cancelled or
-- moved, or if its queue is paused, full or no longer served; and also if it merely does not start, for example because
-- all workers of its queue are busy. Otherwise it would keep the circuit open for the other queues. The next probe
-- comes from the next queue by name that has a candidate among its first runs (:head).
--
-- Lock: the gates lock, taken by the statement before, so that two nodes never choose at the same time; the row of the
-- circuit, which a worker may be closing or opening; and the rows of the runs. The old probe loses its mark under that
-- lock, and only if it is still unclaimed. Only then is the new one marked, so there are never two.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), due as materialized (
    select c.task, c.probe_id, c.probe_at from foliot.circuits c
    where c.open_until <= (select at from clock) order by c.task for update skip locked
), served as materialized (
    select distinct due.task, q.name as queue
    from due join foliot.workers w on due.task = any (w.tasks) cross join jsonb_object_keys(w.queues) as q (name), clock
    where w.expires_at > clock.at and w.draining_at is null
        and not exists (
            select from foliot.pauses p
            where (p.until_at is null or p.until_at > clock.at)
                and (p.kind = 'everything' or (p.kind = 'queue' and p.name = q.name)
                    or (p.kind = 'task' and p.name = due.task))
        )
        and not exists (
            select from foliot.queues l
            where l.name = q.name and l.max_running <= (select count(*) from foliot.runs r
                where r.state = 'running' and r.queue = l.name)
        )
), under_way as materialized (
    select due.task, r.id, r.queue, r.state = 'running' as is_running,
        coalesce(due.probe_at > clock.at - :probe_seconds::float8 * interval '1 second', false) as is_recent,
        r.state = 'ready' and r.task = due.task and r.cancel is null
        and (r.expires_at is null or r.started_at is not null or r.expires_at > clock.at)
            and exists (select from served s where s.task = due.task and s.queue = r.queue) as can_start
    from clock cross join due join foliot.runs r on r.id = due.probe_id and r.is_probe
), chosen as materialized (
    select distinct on (s.task) s.task, s.queue, first.id, u.id as instead_of
    from clock cross join served s left join under_way u on u.task = s.task cross join lateral (
        (
            select head.id, head.rank from (
                select r.id, r.rank, r.task, r.cancel, r.expires_at, r.started_at from foliot.runs r
                where r.state = 'ready' and r.queue = s.queue order by r.rank limit :head::bigint
            ) as head
            where head.task = s.task and head.cancel is null
                and (head.expires_at is null or head.started_at is not null or head.expires_at > clock.at)
            order by head.rank limit 1
        )
        union all
        (
            select line.id, line.rank from (
                select r.id, r.rank, r.cancel, r.expires_at, r.started_at from foliot.runs r
                where r.held_by in ('pause', 'circuit', 'no_worker') and r.queue = s.queue and r.task = s.task
                order by r.rank limit :head::bigint
            ) as line
            where line.cancel is null and (line.expires_at is null or line.started_at is not null
                or line.expires_at > clock.at)
            order by line.rank limit 1
        )
    ) as first
    where u.id is null or not (u.is_running or u.can_start and (u.is_recent or s.queue = u.queue))
    order by s.task, case when s.queue > u.queue then 1 when s.queue < u.queue then 2 when s.queue = u.queue then 3 end,
        case when u.id is not null then s.queue end, first.rank
), given_up as materialized (
    select r.id from foliot.runs r join chosen c on c.instead_of = r.id and c.id <> r.id
    where r.state <> 'running' for update of r skip locked
), unmarked as (
    update foliot.runs set is_probe = null where id = any (array(select id from given_up))
), taken as (
    select r.id from foliot.runs r join chosen c on c.id = r.id
    where (r.state = 'ready' or r.held_by in ('pause', 'circuit', 'no_worker')) and r.task = c.task
        and r.queue = c.queue and r.cancel is null
        and (c.instead_of is null or c.instead_of = c.id or c.instead_of in (select id from given_up))
    for update of r skip locked
), marked as (
    update foliot.runs set is_probe = true, state = 'ready', held_by = null where id = any (array(select id from taken))
    returning id, task, queue
), noted as (
    update foliot.circuits c set probe_id = marked.id, probe_at = clock.at from marked, clock where c.task = marked.task
)
select queue from marked

-- name: close_circuit(task)
-- Forgets the failures of a task, as its success would.
delete from foliot.circuits where task = :task::text

-- name: list_circuits
-- Tasks whose last run failed.
select task, failures, open_until, probe_id from foliot.circuits order by task
