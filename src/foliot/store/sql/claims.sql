-- Claims: a worker takes ready runs.

-- fragment: gates
-- Pauses and open circuits: what keeps ready runs from starting.
clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), paused as materialized (
    select p.kind, p.name from foliot.pauses p, clock where p.until_at is null or p.until_at > clock.at
), closed as materialized (
    select task, false as is_paused from foliot.circuits where open_until is not null
    union all
    select name, true from paused where kind = 'task'
)

-- fragment: wanted_slots
-- The slots that this worker may fill: none if its lease has expired, or if it is draining.
wanted as materialized (
    select w.queue, least(w.slots, q.max_running - (
        select count(*) from foliot.runs r where r.state = 'running' and r.queue = w.queue and q.max_running is not null
    )) as slots
    from unnest(:queues::text[], :slots::bigint[]) as w (queue, slots) left join foliot.queues q on q.name = w.queue
    where (q.max_running is null or :is_limited::boolean)
        and exists (select from foliot.workers, clock
            where id = :worker_id::uuid and expires_at > clock.at and draining_at is null)
        and not exists (select from paused p where p.kind = 'everything' or (p.kind = 'queue' and p.name = w.queue))
), disabled as materialized (
    select task from unnest(:tasks::text[]) as t (task)
    where exists (select from foliot.disabled_tasks) and foliot.is_disabled(task)
)

-- fragment: may_start
-- Of a run: nothing keeps it from starting.
state = 'ready' and cancel is null
            and case
                when task = any (array(select task from closed)) then is_probe
                and task <> all (array(select task from closed where is_paused))
                else true
            end
            and case
                when expires_at is null or started_at is not null then true
                else expires_at > coalesce(:now::timestamptz, clock_timestamp())
            end

-- fragment: claimed_runs
-- What a worker gets to know about a run.
id, token, attempt, lost, queue, task, payload, options, date_part('epoch', started_at - due_at),
    nullif((upstream is not null or signal is not null)::int
        + 2 * (parent_id is not null or has_dependents is true)::int
        + 4 * (task = any (array(select task from disabled)))::int, 0)

-- name: claim_runs(queues, slots, tasks, worker_id, now, is_limited, declined)
-- ready -> running, in order of rank, up to the free slots of each queue. By ctid, which saves another lookup of each
-- run: the rows are locked, so none moves; a run that changed a moment ago is claimed next time.
--
-- Skipped are runs that another worker is claiming, expired runs, cancelled runs, and runs of a paused queue or task.
-- Of a task with an open circuit, only the probe is claimed. A worker gets nothing if its lease has expired, because
-- its runs would be released before they begin, or if it is draining.
--
-- Only one worker at a time claims from a queue with a limit (:is_limited), because the running runs are counted here,
-- and the count can't see uncommitted claims.
--
-- A worker does not get the runs that it :declined, because its version of their task does not take their payload.
--
-- A run whose task is disabled in its namespace is claimed and marked. Its worker refuses it, so that it ends with a
-- reason.
with {{gates}}, {{wanted_slots}}
update foliot.runs
set state = 'running', token = token + 1, attempt = attempt + 1, worker_id = :worker_id::uuid,
    started_at = coalesce(:now::timestamptz, clock_timestamp())
where ctid = any (array(
    select picked.ctid
    from wanted
    cross join lateral (
        select ctid from foliot.runs
        where queue = wanted.queue and task = any (:tasks::text[]) and id <> all (:declined::uuid[]) and {{may_start}}
        order by rank
        limit greatest(0, wanted.slots)
        for update skip locked
    ) as picked
))
returning {{claimed_runs}}

-- name: claim_runs_by_id(run_ids, queues, slots, tasks, worker_id, now, is_limited)
-- ready -> running for those of the given runs that claim_runs could claim. A broker named them, which proves nothing,
-- so every rule of claim_runs holds here, too. Each run is looked up by its id, however many others are ready.
with {{gates}}, {{wanted_slots}}
update foliot.runs
set state = 'running', token = token + 1, attempt = attempt + 1, worker_id = :worker_id::uuid,
    started_at = coalesce(:now::timestamptz, clock_timestamp())
where ctid = any (array(
    select picked.ctid from (
        select found.ctid, wanted.slots, row_number() over (partition by found.queue order by found.rank) as place
        from unnest(:run_ids::uuid[]) as named (id)
        cross join lateral (
            select ctid, queue, rank from foliot.runs
            where id = named.id and task = any (:tasks::text[]) and {{may_start}}
            limit 1
            for update skip locked
        ) as found
        join wanted on wanted.queue = found.queue
    ) as picked
    where picked.place <= picked.slots
))
returning {{claimed_runs}}

-- name: list_startable(queues, limit, now)
-- The first runs of each queue that a worker could claim, for a broker to announce. Reads no more than :limit of each,
-- besides runs of paused tasks; long lines of those are parked.
with {{gates}}
select q.queue, r.id, r.rank, r.priority
from unnest(:queues::text[]) as q (queue)
cross join lateral (
    select id, rank, priority from foliot.runs
    where queue = q.queue and {{may_start}}
    order by rank limit :limit::bigint
) as r
where not exists (select from paused p where p.kind = 'everything' or (p.kind = 'queue' and p.name = q.queue))

-- name: take_queue(queue)
-- One claim at a time from a queue with a limit. The transaction's end releases the lock.
select pg_advisory_xact_lock(hashtextextended(:queue::text, 0))

-- name: recover_claims(worker_id, ids, tokens)
-- Runs that this worker owns but does not hold, because the answer to their claim got lost. NOT IN, because PostgreSQL
-- hashes a list of any length.
select id, token, attempt, lost, queue, task, payload, options, date_part('epoch', started_at - due_at),
    nullif((upstream is not null or signal is not null)::int
        + 2 * (parent_id is not null or has_dependents is true)::int
        + 4 * foliot.is_disabled(task)::int, 0)
from foliot.runs r
where state = 'running' and worker_id = :worker_id::uuid
    and (r.id, r.token) not in (select * from unnest(:ids::uuid[], :tokens::bigint[]))

-- name: held_runs(worker_id, ids, tokens)
-- Those of the given attempts that the worker holds.
select r.id, r.token
from unnest(:ids::uuid[], :tokens::bigint[]) as h (id, token)
join foliot.runs r on r.id = h.id and r.token = h.token and r.worker_id = :worker_id::uuid
