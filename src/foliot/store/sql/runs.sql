-- Every statement that writes `state`. Each names its from-states and, for an attempt, its fence: (id, token, worker).
--
-- The clock moves on while a statement runs, so PostgreSQL looks an instant up in an index only if it is read once, by
-- a select of its own: compared with clock_timestamp() itself, every future run would be read to find that it is not
-- due.

-- fragment: run_columns
-- The columns that a run takes with it into history.
id, created_at, due_at, started_at, token, attempt, lost, priority, queue, task, name, payload, options, job_id,
    tick_at, rerun_of, parent_id, step, upstream, has_dependents

-- fragment: given_runs
-- The database's clock decides what is due. The ordinal keeps the order inside one batch. An array is empty if no run
-- of the batch has a value for it.
clock as materialized (
    select at, (extract(epoch from at) * 1000000)::bigint as rank
    from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as now
), given as (
    -- A due instant in the past counts as now, or old instants would jump the queue.
    select g.*, clock.at, clock.rank,
        greatest(clock.at, g.due_at, clock.at + g.delay_seconds * interval '1 second') as due
    from clock cross join unnest(
        :ids::uuid[], :tasks::text[], :queues::text[], :names::text[], :priorities::bigint[], :due_ats::timestamptz[],
        :delays::float8[], :payloads::jsonb[], :options::jsonb[], :unique_keys::text[], :expires_ats::timestamptz[]
    ) with ordinality as g (
        id, task, queue, name, priority, due_at, delay_seconds, payload, options, unique_key, expires_at, ordinal
    )
)

-- fragment: insert_given_runs
-- History has no key that would keep out a run that has finished, so a repeated insert looks there, from :finished_from
-- on. It is null the first time.
insert into foliot.runs (
    id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, unique_key, expires_at
)
select
    id, at, case when options ? 'signal' then at + foliot.signal_wait(options) else due end,
    case when due > at then (extract(epoch from due) * 1000000)::bigint else rank end
        - priority * :aging::bigint + ordinal,
    priority,
    case when due > at then 'scheduled' when options ?| '{concurrency,rate,signal}' then 'held' else 'ready' end,
    case
        when due > at then null when options ? 'signal' then 'signal' when foliot.has_limits(options) then 'limit'
    end,
    queue, task, name, payload, options, unique_key, expires_at
from given
where :finished_from::timestamptz is null or not exists (
    select from foliot.history h where h.id = given.id and h.finished_at >= :finished_from::timestamptz
)

-- fragment: stored_runs
-- Most runs are ready at once, and the answer does not name them: one row for each of the others, or a single row.
select clock.at, number, other.id, other.state, other.due_at
from clock cross join (select count(*) as number from stored) as counted
left join stored as other on other.state <> 'ready'

-- name: insert_runs(
--     ids, tasks, queues, names, priorities, due_ats, delays, payloads, options, now, aging, finished_from,
--     unique_keys, expires_ats
-- )
-- Stores runs of which some may be there already, because the answer to their insert got lost. A run whose unique key
-- is taken is not stored.
with {{given_runs}}, stored as (
    {{insert_given_runs}}
    on conflict do nothing
    returning id, state, due_at
)
{{stored_runs}}

-- name: insert_new_runs(
--     ids, tasks, queues, names, priorities, due_ats, delays, payloads, options, now, aging, finished_from,
--     unique_keys, expires_ats
-- )
-- Stores runs with new ids and without unique keys. To expect a conflict, as insert_runs does, costs a lookup and a WAL
-- record for each run.
with {{given_runs}}, stored as (
    {{insert_given_runs}}
    returning id, state, due_at
)
{{stored_runs}}

-- name: insert_fair_runs(
--     ids, tasks, queues, names, priorities, due_ats, delays, payloads, options, now, aging, finished_from,
--     unique_keys, expires_ats, fair_step
-- )
-- Stores runs of which some have a fairness key. These are ranked a step apart behind the last waiting run of their own
-- key, but not behind the excess of other keys: a new key is next in line. The rank is part of the insert, because a
-- second statement could fail after the runs are stored.
with {{given_runs}}, alone as (
    select given.*, options ->> 'fairness_key' as key,
        case when due > at then (extract(epoch from due) * 1000000)::bigint else rank end
            - priority * :aging::bigint + ordinal as own_rank
    from given
    where :finished_from::timestamptz is null or not exists (
        select from foliot.history h where h.id = given.id and h.finished_at >= :finished_from::timestamptz
    )
), starts as materialized (
    select g.queue, g.key, greatest((
        select r.rank from foliot.runs r
        where r.state = 'ready' and r.queue = g.queue and r.options ->> 'fairness_key' = g.key
            and r.id <> all (:ids::uuid[])
        order by r.rank desc limit 1
    ) + :fair_step::bigint, coalesce((
        select r.rank from foliot.runs r where r.state = 'ready' and r.queue = g.queue and r.id <> all (:ids::uuid[])
        order by r.rank limit 1
    ), g.own_rank)) as rank
    from (select queue, key, min(own_rank) as own_rank from alone where key is not null group by queue, key) as g
), stored as (
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, unique_key,
        expires_at
    )
    select
        a.id, a.at, case when a.options ? 'signal' then a.at + foliot.signal_wait(a.options) else a.due end,
        coalesce(
            s.rank + (row_number() over (partition by a.queue, a.key order by a.own_rank) - 1) * :fair_step::bigint,
            a.own_rank
        ),
        a.priority,
        case
            when a.due > a.at then 'scheduled' when a.options ?| '{concurrency,rate,signal}' then 'held' else 'ready'
        end,
        case
            when a.due > a.at then null when a.options ? 'signal' then 'signal'
            when foliot.has_limits(a.options) then 'limit'
        end,
        a.queue, a.task, a.name, a.payload, a.options, a.unique_key, a.expires_at
    from alone a left join starts s on s.queue = a.queue and s.key = a.key
    on conflict do nothing
    returning id, state, due_at
)
{{stored_runs}}

-- name: remove_finished(ids, finished_from)
-- Of what was inserted again in this transaction, that which had ended between the look into history and the insert,
-- which can't have met it there any more. How many those are.
with removed as (
    delete from foliot.runs r
    where r.id = any (:ids::uuid[])
        and exists (select from foliot.history h where h.id = r.id and h.finished_at >= :finished_from::timestamptz)
    returning r.id
)
select count(*) from removed

-- name: insert_alike(
--     ids, payloads, task, queue, name, priority, due_at, delay_seconds, options, expires_at, now, aging
-- )
-- insert_runs for new runs without a unique key that differ in nothing but their ids and payloads, as those that come
-- together mostly do: what they have in common is sent once and decided once. It answers with that, and either stores
-- all of them or fails.
with clock as materialized (
    select at, (extract(epoch from at) * 1000000)::bigint as rank
    from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as now
), due as materialized (
    select clock.*, greatest(at, :due_at::timestamptz, at + :delay_seconds::float8 * interval '1 second') as due
    from clock
), common as materialized (
    select
        at, case when :options::jsonb ? 'signal' then at + foliot.signal_wait(:options::jsonb) else due end as due_at,
        case when due > at then (extract(epoch from due) * 1000000)::bigint else rank
            end - :priority::bigint * :aging::bigint as rank,
        case when due > at then 'scheduled' when :options::jsonb ?| '{concurrency,rate,signal}' then 'held' else 'ready'
            end as state,
        case
            when due > at then null when :options::jsonb ? 'signal' then 'signal'
            when foliot.has_limits(:options::jsonb) then 'limit'
        end as held_by
    from due
), stored as (
    insert into foliot.runs (id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload,
        options, expires_at)
    select
        given.id, at, due_at, rank + ordinal, :priority::bigint, state, held_by, :queue::text, :task::text, :name::text,
        nullif(given.payload, 'null'),
        :options::jsonb, :expires_at::timestamptz
    from common cross join rows from (unnest(:ids::text::uuid[]), jsonb_array_elements(:payloads::jsonb))
        with ordinality as given (id, payload, ordinal)
)
select at, state, due_at from common

-- name: find_runs(ids, finished_from)
-- Which of these ids exist, live or finished: read after an insert whose answer got lost.
select id, state, due_at, created_at from foliot.runs where id = any(:ids::uuid[])
union all
select id, state, due_at, created_at from foliot.history
where id = any(:ids::uuid[]) and finished_at >= :finished_from::timestamptz

-- name: claim_runs(queues, slots, tasks, worker_id, now, is_limited)
-- ready -> running, at most the free slots of each queue, in rank order; rows that another worker is taking are stepped
-- over, and so is what has expired, or came back from a worker after it was asked to end, and was not swept up yet. Not
-- from what is paused, nor of a task whose circuit is open, but for its probe, unless the task is paused as well. A
-- worker whose lease is over gets nothing, because its runs would be given back before they begin. Neither does a
-- worker that was asked to drain. A queue with a limit is claimed from by one worker at a time (:is_limited): its runs
-- are counted here, and counting does not see what another is taking. A run whose task is turned off in its namespace
-- is claimed, too, and marked: its worker refuses it, so that it ends and says why. By ctid, which saves looking each
-- of them up again: they are locked, so none moves. One that was changed a moment ago is for the next turn.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), paused as materialized (
    select p.kind, p.name from foliot.pauses p, clock where p.until_at is null or p.until_at > clock.at
), wanted as materialized (
    select w.queue, least(w.slots, q.max_running - (
        select count(*) from foliot.runs r where r.state = 'running' and r.queue = w.queue and q.max_running is not null
    )) as slots
    from unnest(:queues::text[], :slots::bigint[]) as w (queue, slots) left join foliot.queues q on q.name = w.queue
    where (q.max_running is null or :is_limited::boolean)
        and exists (select from foliot.workers, clock
            where id = :worker_id::uuid and expires_at > clock.at and draining_at is null)
        and not exists (select from paused p where p.kind = 'everything' or (p.kind = 'queue' and p.name = w.queue))
), closed as materialized (
    select task, false as is_paused from foliot.circuits where open_until is not null
    union all
    select name, true from paused where kind = 'task'
), disabled as materialized (
    select task from unnest(:tasks::text[]) as t (task)
    where exists (select from foliot.disabled_tasks) and foliot.is_disabled(task)
)
update foliot.runs
set state = 'running', token = token + 1, attempt = attempt + 1, worker_id = :worker_id::uuid,
    started_at = coalesce(:now::timestamptz, clock_timestamp())
where ctid = any (array(
    select picked.ctid
    from wanted
    cross join lateral (
        select ctid from foliot.runs
        where state = 'ready' and cancel is null and queue = wanted.queue and task = any (:tasks::text[])
            and case
                when task = any (array(select task from closed)) then is_probe
                and task <> all (array(select task from closed where is_paused))
                else true
            end
            and case
                when expires_at is null or started_at is not null then true
                else expires_at > coalesce(:now::timestamptz, clock_timestamp())
            end
        order by rank
        limit greatest(0, wanted.slots)
        for update skip locked
    ) as picked
))
returning id, token, attempt, lost, queue, task, payload, options, date_part('epoch', started_at - due_at),
    upstream is not null or signal is not null, parent_id is not null or has_dependents,
    task = any (array(select task from disabled))

-- name: take_queue(queue)
-- One claim at a time from a queue that has a limit; let go of with the transaction.
select pg_advisory_xact_lock(hashtextextended(:queue::text, 0))

-- name: recover_claims(worker_id, ids, tokens)
-- The runs that this worker owns but does not hold: those of claims whose answer got lost. NOT IN, because PostgreSQL
-- hashes its list however long that is.
select id, token, attempt, lost, queue, task, payload, options, date_part('epoch', started_at - due_at),
    upstream is not null or signal is not null, parent_id is not null or has_dependents, foliot.is_disabled(task)
from foliot.runs r
where state = 'running' and worker_id = :worker_id::uuid
    and (r.id, r.token) not in (select * from unnest(:ids::uuid[], :tokens::bigint[]))

-- name: finish_runs(worker_id, ids, tokens, states, reasons, results, errors, outputs, now, patterns)
-- running -> succeeded | failed | cancelled: out of the live runs, into history, in one statement. Of a failure,
-- :patterns is what its message has in common with others of its kind. Only what runs has a worker, as the table's
-- constraint says; to name the state as well would lead the planner to read all that the worker runs.
with outcome as (
    select * from unnest(:ids::uuid[], :tokens::text::bigint[], :states::text[], :reasons::text[], :results::json[],
        :errors::jsonb[], :outputs::bytea[], :patterns::text[])
    as o (id, token, state, reason, result, error, output, pattern)
), finished as (
    delete from foliot.runs r using outcome o
    where r.id = o.id and r.token = o.token and r.worker_id = :worker_id::uuid
    returning r.id, r.created_at, r.due_at, r.started_at, r.token, r.attempt, r.lost, r.priority, r.worker_id, o.state,
        r.queue,
        r.task, r.name, o.reason, r.payload, r.options, o.result, o.error, o.output, r.job_id, r.tick_at,
        r.rerun_of, r.parent_id, r.step, r.upstream, r.has_dependents, md5(r.task || ': ' || o.pattern) as fingerprint
)
insert into foliot.history ({{run_columns}}, finished_at, worker_id, state, reason, result, error, output, fingerprint)
select {{run_columns}},
    coalesce(:now::timestamptz, clock_timestamp()), worker_id, state, reason, result, error, output, fingerprint
from finished

-- name: succeed_runs(worker_id, ids, tokens, results, now)
-- finish_runs for what most batches are: runs that succeeded, and of which nothing is to be kept but what they
-- returned.
with outcome as (
    select * from unnest(:ids::uuid[], :tokens::text::bigint[], :results::json[]) as o (id, token, result)
), finished as (
    delete from foliot.runs r using outcome o
    where r.id = o.id and r.token = o.token and r.worker_id = :worker_id::uuid
    returning r.id, r.created_at, r.due_at, r.started_at, r.token, r.attempt, r.lost, r.priority, r.worker_id, r.queue,
        r.task, r.name,
        r.payload, r.options, o.result, r.job_id, r.tick_at, r.rerun_of, r.parent_id, r.step, r.upstream,
        r.has_dependents
)
insert into foliot.history ({{run_columns}}, finished_at, worker_id, state, result)
select {{run_columns}}, coalesce(:now::timestamptz, clock_timestamp()), worker_id, 'succeeded', result
from finished

-- name: retry_runs(worker_id, ids, tokens, outcomes, delays, errors, outputs, now, aging)
-- running -> scheduled: the attempt gets a row of its own, the run waits for its next one. One that was snoozed is not
-- consumed, but counted. A probe has had its say: it waits for the circuit like the others. A run with a concurrency
-- key has made room, as foliot.turns says.
with outcome as (
    select o.*, coalesce(:now::timestamptz, clock_timestamp()) as at
    from unnest(:ids::uuid[], :tokens::bigint[], :outcomes::text[], :delays::float8[], :errors::jsonb[],
        :outputs::bytea[])
    as o (id, token, outcome, delay_seconds, error, output)
), held as (
    select r.id, r.token, r.attempt, r.worker_id, r.started_at, r.priority, o.outcome, o.error, o.output, o.at,
        o.at + o.delay_seconds * interval '1 second' as due, r.options #>> '{concurrency,key}' as concurrency_key
    from foliot.runs r join outcome o on r.id = o.id
    where r.token = o.token and r.worker_id = :worker_id::uuid and r.state = 'running'
    for update of r
), kept as (
    insert into foliot.attempts (run_id, token, attempt, worker_id, started_at, finished_at, outcome, error, output)
    select id, token, attempt, worker_id, started_at, at, outcome, error, output from held
), freed as (
    insert into foliot.turns (kind, key, look_at)
    select distinct 'concurrency', concurrency_key, '-infinity'::timestamptz from held where concurrency_key is not null
)
update foliot.runs r
set state = 'scheduled', worker_id = null, is_probe = null, due_at = held.due,
    attempt = r.attempt - (held.outcome = 'snoozed')::int,
    options = case
        when held.outcome <> 'snoozed' then r.options
        else jsonb_set(coalesce(r.options, '{}'), '{snoozes}',
            to_jsonb(coalesce((r.options ->> 'snoozes')::bigint, 0) + 1))
    end,
    rank = (extract(epoch from held.due) * 1000000)::bigint - held.priority * :aging::bigint
from held where r.id = held.id

-- name: release_runs(worker_id, ids, tokens)
-- running -> ready: given back by a worker that stops. The attempt is not consumed; the token is, for good. What had an
-- attempt before has started, and can't expire any more.
update foliot.runs r
set state = 'ready', worker_id = null, attempt = r.attempt - 1,
    started_at = case when r.attempt > 1 or r.options ? 'snoozes' then r.started_at end
from unnest(:ids::uuid[], :tokens::bigint[]) as o (id, token)
where r.id = o.id and r.token = o.token and r.worker_id = :worker_id::uuid and r.state = 'running'

-- name: count_written(ids, tokens, worker_id, finished_from)
-- Of outcomes that matched no live attempt: how many had been written before, by a statement whose answer got lost.
select count(*) from unnest(:ids::uuid[], :tokens::bigint[]) as o (id, token)
where exists (
    select from foliot.history h
    where h.id = o.id and h.token = o.token and h.worker_id = :worker_id::uuid
        and h.finished_at >= :finished_from::timestamptz
)
or exists (select from foliot.runs r where r.id = o.id and r.token = o.token and r.state in ('scheduled', 'ready'))

-- name: promote_due_runs(limit, now)
-- scheduled -> ready for what is due, oldest first; -> held for what has a limit to pass. By ctid, as claims do.
update foliot.runs
set state = case when foliot.has_limits(options) then 'held' else 'ready' end,
    held_by = case when foliot.has_limits(options) then 'limit' end
where ctid = any (array(
    select ctid from foliot.runs
    where state = 'scheduled' and due_at <= (select coalesce(:now::timestamptz, clock_timestamp()))
    order by due_at
    limit :limit::bigint
    for update skip locked
))
returning queue

-- name: seconds_until_due(now)
-- How long until the next scheduled run is due; null when there is none.
select extract(epoch from min(due_at) - coalesce(:now::timestamptz, clock_timestamp()))::float8 from foliot.runs
where state = 'scheduled'

-- name: ready_queues(limit)
-- Those in which something is ready, one look at the index each however long their lines are.
with recursive lines as (
    (select queue from foliot.runs where state = 'ready' order by queue, rank limit 1)
    union all
    select (select r.queue from foliot.runs r where r.state = 'ready' and r.queue > lines.queue order by r.queue, r.rank
        limit 1)
    from lines where lines.queue is not null
)
select queue from lines where queue is not null limit :limit::bigint

-- name: move_runs(ids, target, sources)
-- Between waiting, scheduled, held and ready: no attempt begins or ends. The from-states are those of the table in
-- model/states.py.
update foliot.runs
set state = :target::text, held_by = case when :target::text = 'held' then 'limit' end
where id = any (array(select id from foliot.runs where id = any (:ids::uuid[]) and state = any (:sources::text[])
    order by id for update))
returning id

-- name: close_runs(ids, target, reason, sources, now)
-- A run that no worker holds ends unrun: cancelled or skipped. Roots first, as whoever settles what follows from it
-- wants them.
with roots as materialized (
    select id from foliot.parents
    where id = any (array(select p.root_id from foliot.runs r join foliot.parents p on p.id = r.parent_id
        where r.id = any (:ids::uuid[])))
    order by id for update
), closed as (
    delete from foliot.runs
    where id = any (array(
        select id from foliot.runs
        where id = any (:ids::uuid[]) and state = any (:sources::text[]) and (select count(*) from roots) >= 0
        order by id for update
    ))
    returning *
)
insert into foliot.history ({{run_columns}}, finished_at, state, reason)
select {{run_columns}}, coalesce(:now::timestamptz, clock_timestamp()), :target::text, :reason::text
from closed
returning id

-- name: expire_runs(limit, now)
-- ready | waiting -> skipped, scheduled | held -> cancelled: runs that have not been started by the instant after which
-- they must not be. Roots first, as whoever settles what follows from it wants them.
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

-- name: mark_cancelled(ids, message, is_forced)
-- Asks for the end of runs: those nobody holds are closed by close_cancelled, the others by whoever holds them, unless
-- they are forced.
update foliot.runs
set cancel = jsonb_build_object('reason', 'cancelled', 'message', :message::text, 'is_forced', :is_forced::boolean)
where id = any (array(select id from foliot.runs where id = any (:ids::uuid[]) order by id for update))
returning id, worker_id

-- name: close_cancelled(limit, now)
-- Runs that are marked and held by nobody, or are to be ended by force, end. Whoever holds one all the same finds it
-- gone. One that is made of others ends with the last of them. Roots first, as whoever settles what follows from it
-- wants them.
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

-- name: lose_runs(limit, lost_max, now, pattern)
-- running -> ready | failed for runs whose worker's lease is over or gone. Works from the claims, not from the list of
-- workers, so a claim that slipped in after its worker was struck off is found too. The distinct workers come from a
-- walk along the index. The row of a worker whose lease is over is locked, which checks the lease again: one that is
-- renewing it just now keeps its runs.
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
        r.lost + 1 >= :lost_max::bigint
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
)
select (select count(*) from requeued), (select count(*) from buried), array(select distinct queue from requeued),
    array(select id from taken order by id), array(select token from taken order by id)

-- name: get_run(run_id, finished_from)
-- One run, wherever it is. A single statement sees it in exactly one of the two places. One that is made of others says
-- how far they are.
select
    r.id, r.name, r.task, r.queue, r.state, null as reason, r.priority, r.attempt, r.lost, r.worker_id, r.payload,
    r.options,
    null::json as result, a.error, a.output, r.due_at, r.created_at, r.started_at, null::timestamptz as finished_at,
    r.job_id, r.tick_at, r.rerun_of, null::uuid as rerun_as, r.progress, r.cancel, r.unique_key, r.expires_at,
    r.held_by, r.parent_id, r.step,
    r.upstream, p.total, p.total - p.next_index + p.unfinished as unfinished
from foliot.runs r
left join foliot.parents p on p.run_id = r.id
left join lateral (
    select error, output from foliot.attempts where run_id = r.id and finished_at >= :finished_from::timestamptz
    order by token desc limit 1
) a on true
where r.id = :run_id::uuid
union all
select
    id, name, task, queue, state, reason, priority, attempt, lost, worker_id, payload, options,
    result, error, output, due_at, created_at, started_at, finished_at,
    job_id, tick_at, rerun_of, rerun_as, null, null, null, null, null, parent_id, step, upstream, null, null
from foliot.history where id = :run_id::uuid and finished_at >= :finished_from::timestamptz
