-- Maps: creates the items, and takes over the results of an earlier run of the same map.

-- name: refill(map_id, now)
-- Creates the first items. The settle trigger creates more as these end.
select foliot.refill(:map_id::uuid, coalesce(:now::timestamptz, clock_timestamp()))

-- name: find_adoptable(run_id, template, items)
-- The finished map whose results a rerun may take over: it has the same items and, apart from the trace, the same
-- template, and some items did not succeed. A map starts from the beginning if its list has changed, or if some of its
-- items have left history.
select p.id, p.failed + p.cancelled + p.skipped from foliot.runs r
join foliot.parents p on p.run_id = r.rerun_of and p.kind = 'map'
where r.id = :run_id::uuid and p.finished_at is not null
    and p.template #- '{options,traceparent}' = :template::jsonb #- '{options,traceparent}'
    and p.items is not distinct from :items::jsonb
    and (p.succeeded < p.next_index or p.next_index < p.total)
    and p.failed + p.cancelled + p.skipped = (
        select count(*) from (
            select distinct on (h.step) h.state from foliot.history h
            where h.parent_id = p.id and h.finished_at >= p.created_at - interval '1 day'
            order by h.step, h.finished_at desc, h.id desc
        ) as latest
        where latest.state <> 'succeeded'
    )

-- name: adopt_items(map_id, run_id, on_failure, capacity)
-- Reopens a finished map under its new run: failed items are open again, and items that were never created will be.
update foliot.parents p
set run_id = :run_id::uuid, finished_at = null, stop = null, blame = null, failed = 0, cancelled = 0, skipped = 0,
    unfinished = p.failed + p.cancelled + p.skipped, on_failure = :on_failure::text, capacity = :capacity::bigint,
    root_id = coalesce((select o.root_id from foliot.parents o where o.id = r.parent_id), p.id)
from foliot.runs r
where r.id = :run_id::uuid and p.run_id = r.rerun_of and p.kind = 'map' and p.finished_at is not null
    and p.id = :map_id::uuid
returning p.unfinished

-- name: repeat_items(map_id, aging, now)
-- A new run for each item that did not succeed, with its original values. Counted as submitted, as refill does.
with made as (
insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options,
    rerun_of, parent_id, step)
select foliot.new_id(at), at, at,
    (extract(epoch from at) * 1000000)::bigint - h.priority * :aging::bigint + row_number() over (), h.priority,
    case when foliot.has_limits(h.options) then 'held' else 'ready' end,
    case when foliot.has_limits(h.options) then 'limit' end,
    h.queue, h.task, h.name, h.payload, h.options - 'snoozes', h.id, h.parent_id, h.step
from (
    select distinct on (h.step) h.* from foliot.history h
    where h.parent_id = :map_id::uuid
        and h.finished_at >= (select created_at from foliot.parents where id = :map_id::uuid) - interval '1 day'
    order by h.step, h.finished_at desc, h.id desc
) as h, (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
where h.state <> 'succeeded'
returning id
)
insert into foliot.counted (name, value) select 'submitted', count(*) from made having count(*) > 0
