-- Parking: takes long backlogs of runs that nobody may start out of the way of the claims, which would skip them one by
-- one.

-- name: park_runs(now, head, long)
-- ready -> held for runs whose task is paused, whose circuit is open, or whose task no worker of their queue knows, if
-- a queue has many of them (:long). It looks at the head of a queue only (:head), because claims skip only that, and
-- only if such a run is among the very first. Probes, runs with a limit and runs of recurring jobs stay.
--
-- Lock: the row of each run, under which its conditions are checked again. Meanwhile another node may have made it a
-- probe, a worker may have claimed it, or a client may have replaced it. A pause or circuit that ends meanwhile does no
-- harm: unpark_runs brings the runs back.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), lines as (
    (select queue from foliot.runs where state = 'ready' order by queue limit 1)
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > l.queue order by queue limit 1)
    from lines l where l.queue is not null
), closed as materialized (
    select task, 'circuit' as why from foliot.circuits where open_until is not null
    union
    select p.name, 'pause' from foliot.pauses p, clock
    where p.kind = 'task' and (p.until_at is null or p.until_at > clock.at)
        and not exists (select from foliot.circuits c where c.task = p.name and c.open_until is not null)
), known as materialized (
    select distinct q.name as queue, t.name as task
    from foliot.workers w cross join jsonb_object_keys(w.queues) as q (name) cross
    join unnest(w.tasks) as t (name), clock
    where w.expires_at > clock.at
), suspicious as materialized (
    select l.queue from lines l where exists (
        select from (select r.task from foliot.runs r where r.state = 'ready' and r.queue = l.queue order by r.rank
            limit 100) as first
        where first.task in (select task from closed)
            or not exists (select from known k where k.queue = l.queue and k.task = first.task)
    )
), head as materialized (
    select first.id, first.task, l.queue,
        coalesce(c.why, case when k.task is null and l.queue in (select queue from known) then 'no_worker' end) as why
    from suspicious l cross join lateral (
        select r.id, r.task, r.is_probe, r.options, r.job_id, r.cancel
        from foliot.runs r where r.state = 'ready' and r.queue = l.queue order by r.rank limit :head::bigint
    ) as first
    left join closed c on c.task = first.task
    left join known k on k.queue = l.queue and k.task = first.task
    where first.is_probe is not true and foliot.has_limits(first.options) is not true and first.job_id is null
        and first.cancel is null
), locked as (
    select r.id, h.why from foliot.runs r join head h on h.id = r.id
    where r.id = any (array(
        select h.id from head h
        where h.why is not null and h.queue in (select queue from head where why is not null group by queue
            having count(*) >= :long::bigint)
    ))
        and r.state = 'ready' and r.queue = h.queue and r.task = h.task and r.is_probe is not true
        and foliot.has_limits(r.options) is not true and r.cancel is null
    order by r.id for update of r skip locked
)
update foliot.runs r set state = 'held', held_by = locked.why from locked where r.id = locked.id

-- name: unpark_runs(now, head)
-- held -> ready, in order of rank and in batches (:head) for each queue and task, for parked runs that somebody may
-- start again.
--
-- Lock: the row of each run, under which its condition is checked again; a run that another node is bringing back is
-- skipped. A pause or circuit that begins meanwhile does no harm: claims check for it, and park_runs parks the runs
-- again.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), lines as (
    (
        select queue, task from foliot.runs
        where held_by in ('pause', 'circuit', 'no_worker') order by queue, task limit 1
    )
    union all
    select next.queue, next.task from lines l cross join lateral (
        select r.queue, r.task from foliot.runs r
        where r.held_by in ('pause', 'circuit', 'no_worker') and (r.queue, r.task) > (l.queue, l.task)
        order by r.queue, r.task limit 1
    ) as next
), free as (
    select l.queue, l.task from lines l, clock
    where not exists (select from foliot.circuits c where c.task = l.task and c.open_until is not null)
        and not exists (
            select from foliot.pauses p where p.kind = 'task' and p.name = l.task and (p.until_at is null
                or p.until_at > clock.at)
        )
        and exists (select from foliot.workers w
            where w.expires_at > clock.at and w.queues ? l.queue and l.task = any (w.tasks))
)
update foliot.runs set state = 'ready', held_by = null
where id = any (array(
    select r.id from free cross join lateral (
        select first.id from foliot.runs first
        where first.held_by in ('pause', 'circuit', 'no_worker') and first.queue = free.queue and first.task = free.task
        order by first.rank limit :head::bigint for update skip locked
    ) as r
))
returning queue
