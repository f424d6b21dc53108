-- Numbers for /metrics. Each statement reads a bounded number of rows, however many runs there were.

-- name: add_tallies(slot, names, values)
-- Also takes the counts that foliot.counted has gathered in other transactions. Ordered by name, so that processes that
-- share a slot can't deadlock.
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
-- The sum of all slots, and the counts that are still in foliot.counted. There are a few dozen names.
select name, sum(value)::float8 from (
    select name, value from foliot.tallies
    union all
    select name, value from foliot.counted
) as all_of_them
group by name

-- name: count_pending(most)
-- Counts waiting runs: those that wait for a worker (`now`), those that wait for their time (`later`), and all runs of
-- recurring jobs. Each state is counted along its own index.
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
-- Measures the latest runs (:limit), from an id on (:first_id, :finished_from).
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

-- name: list_latest(first_id, finished_from, limit)
-- The latest runs (:limit) from an id on (:first_id, :finished_from), the latest first, of those that a worker started.
select id, case when job_id is not null then coalesce(name, task) else task end as job, state, attempt::bigint,
    options ->> 'traceparent' as traceparent, extract(epoch from started_at - due_at)::float8 as waited,
    extract(epoch from finished_at - started_at)::float8 as lasted, finished_at
from (
    select * from foliot.history where id >= :first_id::uuid and finished_at >= :finished_from::timestamptz
    order by id desc limit :limit::bigint
) as latest
where started_at is not null and worker_id is not null
order by finished_at desc

-- name: count_dead_letters(limit)
-- The number of unreplayed runs among the latest :limit failures.
select count(*) filter (where rerun_as is null) from (
    select rerun_as from foliot.history where state = 'failed' order by finished_at desc, id desc limit :limit::bigint
) as latest
