-- Finds runs and parents whose counters are wrong, and repairs them. Each one found is a fault of Foliot.

-- name: count_anew(run_id)
-- A run that waits counts what it waits for from the beginning.
with forgotten as (
    delete from foliot.dependencies
    where run_id = :run_id::uuid and upstream_id = any (array(select unnest(upstream) from foliot.runs
        where id = :run_id::uuid))
)
update foliot.runs set unmet = cardinality(upstream), met_succeeded = 0, met_failed = 0, met_skipped = 0
where id = :run_id::uuid and state = 'waiting' and unmet is not null and upstream is not null
returning upstream

-- name: find_stuck(after_run, after_parent, runs, parents)
-- What should not be there at any instant: dependents that count other upstreams than they have, or whose rule has been
-- decided; runs that wait for nothing; parents that count other children than they have, or none and have not ended, or
-- whose run is gone; children of a parent that has ended. Looked for now and then; anything found is a fault of ours.
-- Looks at so many runs (:runs) after :after_run, and so many parents (:parents) after :after_parent, and says where it
-- stopped: null at the end.
with some_runs as materialized (
    select id, state, parent_id, rule, unmet, met_succeeded, met_failed, met_skipped, upstream
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
    where w.unmet is null and not exists (select from foliot.parents p where p.run_id = w.id and p.finished_at is null)
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
)
select stopped.*, found.*
from (
    select (select id from some_runs order by id offset :runs::bigint - 1 limit 1),
        (select id from some_parents order by id offset :parents::bigint - 1 limit 1)
) as stopped (run_id, parent_id) left join found on true
