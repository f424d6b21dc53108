-- Limits of a queue: how many of its runs may be running, and how many may wait. Null means no limit.

-- name: put_queue(name, max_running, max_depth, now, updated_at)
-- Replaces only the limits that the caller has read, which the time of the last change identifies (:updated_at; null:
-- there were none). That time grows with every change, even if the clock does not. Rows are never deleted.
insert into foliot.queues as q (name, max_running, max_depth, updated_at)
values (:name::text, :max_running::bigint, :max_depth::bigint, coalesce(:now::timestamptz, clock_timestamp()))
on conflict (name) do update
set max_running = excluded.max_running, max_depth = excluded.max_depth,
    updated_at = greatest(excluded.updated_at, q.updated_at + interval '1 microsecond')
where q.updated_at = :updated_at::timestamptz
returning true

-- name: get_queue(name)
-- The limits of one queue.
select max_running, max_depth, updated_at from foliot.queues where name = :name::text

-- name: full_queues
-- Queues with a bound whose number of waiting runs has reached it. Submissions to them are refused.
select q.name from foliot.queues q
where q.max_depth is not null and (
    select count(*) from (
        (select from foliot.runs r where r.state = 'ready' and r.queue = q.name limit q.max_depth)
        union all
        (select from foliot.runs r where r.held_by in ('pause', 'circuit', 'no_worker') and r.queue = q.name
            limit q.max_depth)
    ) as counted
) >= q.max_depth
