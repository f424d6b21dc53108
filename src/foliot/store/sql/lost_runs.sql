-- Rescues the runs of dead workers.

-- name: lose_runs(limit, lost_max, now, pattern)
-- running -> ready | failed, for runs whose worker is gone or has an expired lease. Starts from the claims rather than
-- from the workers, so it also finds a claim that was made after its worker was removed. A walk along the index finds
-- the distinct workers. The row of an expired worker is locked, which checks the lease again: a worker that is renewing
-- it keeps its runs. Losses before a run last recorded a checkpoint do not count: it makes progress.
with recursive claiming as (
    (select worker_id from foliot.runs where state = 'running' order by worker_id limit 1)
    union all
    select (
        select worker_id from foliot.runs where state = 'running' and worker_id > claiming.worker_id order by worker_id
        limit 1
    )
    from claiming where claiming.worker_id is not null
), expired as materialized (
    select w.id as worker_id from foliot.workers w
    where w.id = any (array(select worker_id from claiming))
        and w.expires_at <= coalesce(:now::timestamptz, clock_timestamp())
    for update skip locked
), dead as (
    select worker_id from expired
    union all
    select c.worker_id from claiming c
    where c.worker_id is not null and not exists (select from foliot.workers w where w.id = c.worker_id)
), taken as (
    select r.id, r.token, r.attempt, r.worker_id, r.started_at,
        r.lost + 1 - coalesce((select max(c.lost) from foliot.checkpoints c where c.run_id = r.id), 0)
            >= :lost_max::bigint
        or coalesce(r.options ->> 'guarantee', t.guarantee, '') = 'at_most_once' as is_spent
    from foliot.runs r join dead on r.worker_id = dead.worker_id left join foliot.tasks t on t.name = r.task
    where r.state = 'running'
    limit :limit::bigint
    for update of r skip locked
), kept as (
    insert into foliot.attempts (run_id, token, attempt, worker_id, started_at, finished_at, outcome)
    select id, token, attempt, worker_id, started_at, coalesce(:now::timestamptz, clock_timestamp()), 'lost' from taken
    where not is_spent
), requeued as (
    update foliot.runs r
    set state = 'ready', worker_id = null, lost = r.lost + 1
    from taken where r.id = taken.id and not taken.is_spent
    returning r.queue
), spent as (
    delete from foliot.runs r using taken where r.id = taken.id and taken.is_spent
    returning r.id, r.created_at, r.due_at, r.started_at, r.token, r.attempt, r.lost + 1 as lost, r.priority,
        r.worker_id, r.queue,
        r.task, r.name, r.payload, r.options, r.job_id, r.tick_at, r.rerun_of, r.parent_id, r.step, r.upstream,
        r.has_dependents
), buried as (
    insert into foliot.history ({{run_columns}}, finished_at, worker_id, state, reason, error, fingerprint)
    select {{run_columns}},
        coalesce(:now::timestamptz, clock_timestamp()), worker_id, 'failed', 'lost',
        jsonb_build_object('kind', 'WorkerLost', 'message', 'the worker died while it ran this, ' || lost || ' in all'),
        md5(task || ': ' || :pattern::text)
    from spent
    returning id
), noted as (
    -- In order, so that two nodes that lose runs of the same workers can't deadlock.
    insert into foliot.gone_workers as g (id, name, queues, labels, started_at, gone_at, is_dead, lost, lost_runs)
    select t.worker_id, w.name, w.queues, w.labels, w.started_at, coalesce(:now::timestamptz, clock_timestamp()), true,
        t.lost, t.lost_runs
    from (select worker_id, count(*) as lost, (array_agg(id order by id))[1:100] as lost_runs from taken
        group by worker_id) as t
    left join foliot.workers w on w.id = t.worker_id order by t.worker_id
    on conflict (id) do update
    set is_dead = true, lost = g.lost + excluded.lost, lost_runs = (g.lost_runs || excluded.lost_runs)[1:100]
)
select (select count(*) from requeued), (select count(*) from buried), array(select distinct queue from requeued),
    array(select id from taken order by id), array(select token from taken order by id)
