-- Inserts new runs.
--
-- The clock advances while a statement runs. PostgreSQL can look a time up in an index only if it reads the time once,
-- in a select of its own; compared with clock_timestamp() itself, every future run would be read. So here and in other
-- files, `now` is a select.

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
-- History has no key that rejects a run that has already finished, so a repeated insert also searches history from
-- :finished_from on. The first insert passes null.
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
-- Most runs are ready at once, so the answer has one row for each other run, or a single row.
select clock.at, number, other.id, other.state, other.due_at
from clock cross join (select count(*) as number from stored) as counted
left join stored as other on other.state <> 'ready'

-- name: insert_runs(
--     ids, tasks, queues, names, priorities, due_ats, delays, payloads, options, now, aging, finished_from,
--     unique_keys, expires_ats
-- )
-- Stores runs of which some may exist already, because the answer to their insert got lost. A run whose unique key is
-- taken is not stored.
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
-- Removes runs that this transaction inserted again although they had finished: they ended between the look into
-- history and the insert, where no key could reject them. Returns their number.
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
-- insert_runs for new runs without a unique key that differ only in their ids and payloads, as batches mostly do. Their
-- common values are sent and decided once. It stores all of them or fails.
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
-- Which of these ids exist, live or finished. Used after an insert whose answer got lost.
select id, state, due_at, created_at from foliot.runs where id = any(:ids::uuid[])
union all
select id, state, due_at, created_at from foliot.history
where id = any(:ids::uuid[]) and finished_at >= :finished_from::timestamptz
