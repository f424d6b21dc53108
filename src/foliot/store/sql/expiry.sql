-- Ends runs that did not start in time.

-- name: expire_runs(limit, now)
-- ready | waiting -> skipped, scheduled | held -> cancelled, for runs that have not started by their `expires_at`.
-- Locks the root parents first, in the order in which the settle trigger does.
with expired as materialized (
    select id, parent_id from foliot.runs
    where expires_at <= (select coalesce(:now::timestamptz, clock_timestamp())) and state <> 'running'
        and started_at is null
    order by expires_at limit :limit::bigint
), roots as materialized (
    select id from foliot.parents
    where id = any (array(select p.root_id from foliot.parents p where p.id in (select parent_id from expired)))
    order by id for update
), closed as (
    delete from foliot.runs
    where id = any (array(
        select id from foliot.runs
        where id = any (array(select id from expired)) and state <> 'running' and started_at is null
            and expires_at <= coalesce(:now::timestamptz, clock_timestamp()) and (select count(*) from roots) >= 0
        for update skip locked
    ))
    returning *
)
insert into foliot.history ({{run_columns}}, finished_at, state, reason)
select {{run_columns}},
    coalesce(:now::timestamptz, clock_timestamp()),
    case when state in ('ready', 'waiting') then 'skipped' else 'cancelled' end, 'expired'
from closed
