-- Sums of each minute and hour, for charts. Only one node sums up a minute: the key of foliot.recorded decides.

-- name: last_recorded(step)
-- The start of the last minute or hour in the rollups.
select max(at) from foliot.recorded where step = :step::bigint

-- name: record_minute(at, until, bounds, most, depth)
-- Sums up the runs that ended in a minute, and counts the ready runs of each queue, up to :depth. The :most
-- busiest queues of each namespace get a row of their own. Nothing is read if another node has recorded the minute.
with recursive claimed as (
    insert into foliot.recorded (step, at) values (60, :at::timestamptz) on conflict do nothing returning at
), with_ready as (
    (
        select queue from foliot.runs where state = 'ready' and exists (select from claimed) order by queue limit 1
    )
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > w.queue order by queue limit 1)
    from with_ready w where w.queue is not null
), counted as (
    select queue, state, case when started_at is not null then
            width_bucket(extract(epoch from started_at - due_at)::float8, :bounds::float8[]) end as wait,
        count(*) as number
    from foliot.history
    where exists (select from claimed) and finished_at >= :at::timestamptz and finished_at < :until::timestamptz
    group by 1, 2, 3
), parts as (
    select foliot.namespace_of(queue) as namespace, queue, state, wait, number, 0 as ready from counted
    union all
    select foliot.namespace_of(w.queue), w.queue, null, null, 0, r.number
    from with_ready w cross join lateral (
        select count(*) as number
        from (select from foliot.runs where state = 'ready' and queue = w.queue limit :depth::bigint) as first
    ) as r
    where w.queue is not null
), busiest as (
    select namespace, queue from (
        select namespace, queue, row_number() over (
                partition by namespace order by sum(ready) + sum(number) desc, queue) as place
        from parts group by namespace, queue
    ) as ranked where place <= :most::bigint
), named as (
    select namespace, '' as queue, state, wait, number, ready from parts
    union all
    select p.namespace, p.queue, p.state, p.wait, p.number, p.ready
    from parts p join busiest b on b.namespace = p.namespace and b.queue = p.queue
), sums as (
    select namespace, queue, coalesce(sum(number) filter (where state = 'succeeded'), 0) as succeeded,
        coalesce(sum(number) filter (where state = 'failed'), 0) as failed,
        coalesce(sum(number) filter (where state = 'cancelled'), 0) as cancelled,
        coalesce(sum(number) filter (where state = 'skipped'), 0) as skipped, sum(ready) as ready
    from named group by namespace, queue
), waited as (
    select namespace, queue, wait, sum(number)::bigint as number from named where wait is not null group by 1, 2, 3
)
insert into foliot.rollups (step, at, namespace, queue, succeeded, failed, cancelled, skipped, waits, ready)
select 60, :at::timestamptz, s.namespace, s.queue, s.succeeded, s.failed, s.cancelled, s.skipped, array(
        select coalesce(w.number, 0) from generate_series(0, cardinality(:bounds::float8[])) as b (place)
        left join waited w on w.namespace = s.namespace and w.queue = s.queue and w.wait = b.place order by b.place
    ), s.ready
from sums s
on conflict do nothing

-- name: record_hour(at, until, most)
-- Sums up the minutes of an hour.
with claimed as (
    insert into foliot.recorded (step, at) values (3600, :at::timestamptz) on conflict do nothing returning at
), minutes as (
    select * from foliot.rollups
    where exists (select from claimed) and step = 60 and at >= :at::timestamptz and at < :until::timestamptz
), sums as (
    select namespace, queue, sum(succeeded) as succeeded, sum(failed) as failed, sum(cancelled) as cancelled,
        sum(skipped) as skipped, max(ready) as ready, row_number() over (
            partition by namespace, queue = ''
            order by sum(succeeded + failed + cancelled + skipped) + max(ready) desc, queue
        ) as place
    from minutes group by namespace, queue
), waited as (
    select namespace, queue, place, sum(number) as number
    from minutes cross join lateral unnest(waits) with ordinality as w (number, place) group by 1, 2, 3
)
insert into foliot.rollups (step, at, namespace, queue, succeeded, failed, cancelled, skipped, waits, ready)
select 3600, :at::timestamptz, s.namespace, s.queue, s.succeeded, s.failed, s.cancelled, s.skipped, array(
        select w.number from waited w where w.namespace = s.namespace and w.queue = s.queue order by w.place
    ), s.ready
from sums s where s.place <= :most::bigint
on conflict do nothing

-- name: list_rollups(step, namespace, since, until, by_queue)
-- The rows of a namespace: of all its queues, or of the whole.
select at, queue, succeeded, failed, cancelled, skipped, waits, ready
from foliot.rollups
where step = :step::bigint and namespace = :namespace::text and at >= :since::timestamptz and at < :until::timestamptz
    and (queue <> '') = :by_queue::boolean
order by at, queue

-- name: list_recorded(step, since, until)
-- The minutes or hours that were summed up.
select at from foliot.recorded
where step = :step::bigint and at >= :since::timestamptz and at < :until::timestamptz order by at

-- name: forget_rollups(step, before, limit)
-- Deletes old rows in batches, oldest first.
with old_rows as (
    delete from foliot.rollups where ctid = any (array(
        select ctid from foliot.rollups where step = :step::bigint and at < :before::timestamptz
        order by at limit :limit::bigint
    )) returning 1
), old_marks as (
    delete from foliot.recorded where ctid = any (array(
        select ctid from foliot.recorded where step = :step::bigint and at < :before::timestamptz
        order by at limit :limit::bigint
    )) returning 1
)
select (select count(*) from old_rows) + (select count(*) from old_marks)
