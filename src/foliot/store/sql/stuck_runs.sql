-- Finds runs and parents with wrong counters, and repairs them. Each finding is a bug in Foliot.

-- name: count_again(run_id)
-- Counts the upstream runs of a waiting run from the beginning.
with forgotten as (
    delete from foliot.dependencies
    where run_id = :run_id::uuid and upstream_id = any (array(select unnest(upstream) from foliot.runs
        where id = :run_id::uuid))
)
update foliot.runs set unmet = cardinality(upstream), met_succeeded = 0, met_failed = 0, met_skipped = 0
where id = :run_id::uuid and state = 'waiting' and unmet is not null and upstream is not null
returning upstream

-- name: find_stuck(after_run, after_parent, runs, parents)
-- Finds states that must never occur: dependents that count other upstream runs than they have, or whose rule is
-- decided; runs that wait for nothing; parents that count other children than they have, that have none and have not
-- ended, or whose run is gone; and children of an ended parent. One step reads :runs runs after :after_run and :parents
-- parents after :after_parent, and returns where it stopped: null at the end.
with some_runs as materialized (
    select id, state, parent_id, rule, unmet, met_succeeded, met_failed, met_skipped, upstream, awaits, cancel
    from foliot.runs where id > :after_run::uuid order by id limit :runs::bigint
), some_parents as materialized (
    select id, run_id, unfinished, finished_at from foliot.parents where id > :after_parent::uuid order by id
    limit :parents::bigint
), waiting as (
    select * from some_runs where state = 'waiting'
), found as (
    select 'dependent' as kind, w.id from waiting w
    where w.unmet is not null and (
        w.unmet <> (select count(*) from foliot.links l where l.run_id = w.id) + (
            select count(*) from (select distinct u.id from unnest(w.upstream) as u (id)) as u cross join lateral (
                select from foliot.dependencies d
                where d.upstream_id = u.id and d.run_id = w.id and exists (select from foliot.runs r where r.id = u.id)
            ) as arrow
        )
        or foliot.rule_verdict(w.rule, w.unmet, w.met_succeeded, w.met_failed, w.met_skipped) is not null
    )
    union all
    select 'waiting', w.id from waiting w
    where w.unmet is null and w.awaits is null
        and not exists (select from foliot.parents p where p.run_id = w.id and p.finished_at is null)
    union all
    select 'suspended', w.id from waiting w
    where w.awaits is not null and not exists (
        select from foliot.dependencies d join foliot.runs c on c.id = d.upstream_id
        where d.run_id = w.id and d.nudge = 'wake'
            and d.upstream_id = any (array(select value::uuid from jsonb_each_text(w.awaits -> 'children')))
    ) and not exists (select from foliot.nudges n where n.run_id = w.id)
    union all
    select 'parent', p.id from some_parents p
    where p.finished_at is null and (
        p.unfinished <> (select count(*) from foliot.runs c where c.parent_id = p.id)
        or p.unfinished = 0
        or not exists (select from foliot.runs r where r.id = p.run_id and r.state = 'waiting')
    )
    union all
    select 'child', c.id from some_runs c
    where c.parent_id is not null and not exists (select from foliot.parents p
        where p.id = c.parent_id and p.finished_at is null)
        and not exists (select from foliot.runs caller where caller.id = c.parent_id)
        and c.cancel is null and not exists (select from foliot.nudges n where n.run_id = c.id)
)
select stopped.*, found.*
from (
    select (select id from some_runs order by id offset :runs::bigint - 1 limit 1),
        (select id from some_parents order by id offset :parents::bigint - 1 limit 1)
) as stopped (run_id, parent_id) left join found on true
