-- What /metrics shows. Each statement looks at a bounded number of rows, however much has run.

-- name: add_tallies(slot, names, values)
-- Takes along what was counted inside transactions of others. Ordered, so that processes that share a slot can't
-- deadlock.
with noted as (
    delete from foliot.counted
    where ctid = any (array(select ctid from foliot.counted limit 10000 for update skip locked))
    returning name, value
)
insert into foliot.tallies as t (slot, name, value)
select :slot::bigint, name, sum(value) from (
    select name, value from unnest(:names::text[], :values::float8[]) as d (name, value)
    union all
    select name, value from noted
) as added
group by name order by name
on conflict (slot, name) do update set value = t.value + excluded.value

-- name: sum_tallies
-- All slots together, and what nobody has added to them yet; there are a few dozen names.
select name, sum(value)::float8 from (
    select name, value from foliot.tallies
    union all
    select name, value from foliot.counted
) as all_of_them
group by name

-- name: count_pending(most)
-- What waits, by what it waits for: a worker, or its time; and by whether a recurring job made it. Each state is
-- counted along its own index.
select kind, count(*) from (
    (select case when job_id is null then 'now' else 'recurring' end as kind from foliot.runs where state = 'ready'
        limit :most::bigint)
    union all
    (select case when job_id is null then 'now' else 'recurring' end from foliot.runs where state = 'held'
        limit :most::bigint)
    union all
    (
        select case when job_id is null then 'now' else 'recurring' end from foliot.runs
        where state = 'waiting' and parent_id is null limit :most::bigint
    )
    union all
    (
        select case when job_id is null then 'now' else 'recurring' end from foliot.runs
        where state = 'waiting' and parent_id is not null limit :most::bigint
    )
    union all
    (select case when job_id is null then 'later' else 'recurring' end from foliot.runs where state = 'scheduled'
        limit :most::bigint)
) as found
group by kind

-- name: measure_recent(first_id, finished_from, limit, quantiles)
-- How the latest runs went, from an id on (:first_id, :finished_from), of which :limit are looked at.
with recent as materialized (
    select state, attempt - lost as tries, extract(epoch from started_at - due_at)::float8 as waited
    from foliot.history where id >= :first_id::uuid and finished_at >= :finished_from::timestamptz order by id desc
    limit :limit::bigint
)
select count(*) filter (where state = 'succeeded') as succeeded, count(*) filter (where state = 'failed') as failed,
    count(*) filter (where tries > 1) as retried, count(*) filter (where tries > 0) as tried,
    percentile_cont(:quantiles::float8[]) within group (order by greatest(waited,
        0)) filter (where waited is not null) as latencies
from recent

-- name: count_dead_letters(limit)
-- Of the latest :limit failed runs, those that nobody has replayed.
select count(*) filter (where rerun_as is null) from (
    select rerun_as from foliot.history where state = 'failed' order by finished_at desc, id desc limit :limit::bigint
) as latest
