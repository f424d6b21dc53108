-- Shows workflows as pictures: the states of their steps, and the steps of many runs side by side.

-- name: get_progress(reference, namespace)
-- A workflow that has begun, by its own id or by the id of its latest run, without its definition, which can be large.
select p.*, r.name, r.state, r.reason, r.error, r.job_id, r.tick_at
from (
    select id, run_id, kind, on_failure, total, next_index, unfinished, succeeded, failed, cancelled, skipped,
        created_at, finished_at
    from foliot.parents where id = :reference::uuid or run_id = :reference::uuid
    order by id = :reference::uuid desc limit 1
) as p cross join lateral (
    select name, state, null::text as reason, null::jsonb as error, job_id, tick_at, queue
    from foliot.runs where id = p.run_id
    union all
    select name, state, reason, error - 'traceback', job_id, tick_at, queue
    from foliot.history where id = p.run_id and finished_at >= p.created_at - interval '1 day'
) as r
where p.kind = 'workflow' and foliot.namespace_of(r.queue) = :namespace::text

-- name: list_changed_steps(parent_id, since, seen, now)
-- The latest run of each step whose row was written by a transaction that :seen, the cursor of an earlier answer, could
-- not see; all steps without one. Instants would not do: rows appear when their transaction commits, in any order. A
-- map is always among them while it lives, since its counts change without its row. Rows in history that ended before
-- :since are not looked at. Transaction ids repeat, so a cursor that is far behind is reported as unknown.
with asked as materialized (
    select case
            when pg_snapshot_xmax(pg_current_snapshot())::text::bigint - :seen::text::bigint between 0 and 1000000000
                then age(:seen::text::xid8::xid)
        end as age,
        pg_snapshot_xmin(pg_current_snapshot())::text as seen,
        coalesce(:now::timestamptz, clock_timestamp()) as at
), found as (
    select id, step, state, null::text as reason, held_by, attempt, created_at, due_at, started_at,
        null::timestamptz as finished_at, null::text as error
    from foliot.runs, asked
    where parent_id = :parent_id::uuid
        and (:seen::text is null or age(xmin) <= asked.age or (state = 'waiting' and unmet is null))
    union all
    select id, step, state, reason, null, attempt, created_at, due_at, started_at, finished_at,
        left(coalesce(error ->> 'message', error ->> 'kind'), 200)
    from foliot.history, asked
    where parent_id = :parent_id::uuid and finished_at >= :since::timestamptz
        and (:seen::text is null or age(xmin) <= asked.age)
), latest as (
    select distinct on (step) * from found order by step, created_at desc, id desc
)
select asked.age is not null as is_known, asked.seen, asked.at, l.*, p.id as children_of,
    p.total, p.unfinished, p.succeeded, p.failed, p.cancelled,
    p.skipped
from asked left join latest l on true left join foliot.parents p on p.run_id = l.id

-- name: list_cells(parent_ids, since)
-- The state and duration of each step of several workflows: one row for each workflow, however many steps it has.
select parent_id, array_agg(step) as steps, array_agg(state) as states, array_agg(seconds) as seconds
from (
    select distinct on (parent_id, step) parent_id, step, state, seconds
    from (
        select parent_id, step, state, created_at, id, null::float8 as seconds
        from foliot.runs where parent_id = any (:parent_ids::uuid[])
        union all
        select parent_id, step, state, created_at, id, extract(epoch from finished_at - started_at)::float8
        from foliot.history where parent_id = any (:parent_ids::uuid[]) and finished_at >= :since::timestamptz
    ) as found
    order by parent_id, step, created_at desc, id desc
) as latest
group by parent_id
