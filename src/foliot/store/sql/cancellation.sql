-- Cancels runs: marks them, marks the steps of marked workflows, and ends the marked runs that no worker holds.

-- name: mark_cancelled(ids, message, is_forced)
-- Marks runs. close_cancelled ends those that no worker holds, and all of them if the cancel is forced; the others are
-- ended by their worker.
update foliot.runs
set cancel = jsonb_build_object('reason', 'cancelled', 'message', :message::text, 'is_forced', :is_forced::boolean)
where id = any (array(select id from foliot.runs where id = any (:ids::uuid[]) order by id for update))
returning id, worker_id

-- name: close_cancelled(limit, now)
-- Ends marked runs that no worker holds, or whose cancel is forced. A worker that still holds one finds it gone. A
-- workflow or map ends with its last child. Locks the root parents first, in the order in which the settle trigger
-- does.
with asked as materialized (
    select id, parent_id from foliot.runs
    where cancel is not null and (state <> 'running' or cancel ->> 'is_forced' = 'true')
        and not exists (select from foliot.parents p where p.run_id = runs.id and p.finished_at is null)
    order by id limit :limit::bigint
), roots as materialized (
    select id from foliot.parents
    where id = any (array(select p.root_id from foliot.parents p where p.id in (select parent_id from asked)))
    order by id for update
), closed as (
    delete from foliot.runs
    where id = any (array(
        select id from foliot.runs
        where id = any (array(select id from asked)) and cancel is not null
            and (state <> 'running' or cancel ->> 'is_forced' = 'true')
            and (select count(*) from roots) >= 0
        for update skip locked
    ))
    returning *
), kept as (
    insert into foliot.history ({{run_columns}}, finished_at, worker_id, state, reason, error)
    select {{run_columns}},
        coalesce(:now::timestamptz, clock_timestamp()), worker_id, 'cancelled', cancel ->> 'reason',
        jsonb_build_object('kind', 'Cancelled', 'message', coalesce(cancel ->> 'message', ''))
    from closed
)
select id, worker_id from closed

-- name: spread_cancels
-- Marks the children of marked workflows and maps, except steps that always run, unless the cancel is forced. It also
-- marks children that a failure in their workflow stops. Children that another session has locked are skipped, and
-- found the next time.
with asked as materialized (
    select p.id, p.root_id, coalesce(r.cancel, p.stop) as stop from foliot.runs r
    join foliot.parents p on p.run_id = r.id
    where r.cancel is not null and p.finished_at is null
    union
    select p.id, p.root_id, coalesce(r.cancel, p.stop) from foliot.parents p join foliot.runs r on r.id = p.run_id
    where p.stop is not null and p.finished_at is null
), stopping as materialized (
    select a.* from asked a
    where exists (select from foliot.parents p where p.id = a.id and p.stop is distinct from a.stop)
        or exists (
            select from foliot.runs c where c.parent_id = a.id
            and case a.stop ->> 'is_forced' when 'true' then c.cancel ->> 'is_forced' is distinct from 'true'
                else c.cancel is null and c.rule is distinct from 'always' end
        )
), roots as materialized (
    select id from foliot.parents where id = any (array(select root_id from stopping)) order by id for update
), noted as (
    update foliot.parents p set stop = s.stop from stopping s
    where p.id = s.id and p.stop is distinct from s.stop and p.finished_at is null and (select count(*) from roots) > 0
), children as materialized (
    select c.id, s.stop from stopping s join foliot.runs c on c.parent_id = s.id
    where (select count(*) from roots) > 0
        and case s.stop ->> 'is_forced' when 'true' then c.cancel ->> 'is_forced' is distinct from 'true'
            else c.cancel is null and c.rule is distinct from 'always' end
    for update of c skip locked
)
update foliot.runs c set cancel = children.stop from children where c.id = children.id
returning c.worker_id
