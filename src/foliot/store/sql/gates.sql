-- What stands between a run and its start, beside its instant: limits, pauses, circuits. Plain runs pass none of it.

-- name: gates_in_use(now)
-- Whether a key has to be looked at, a circuit has rested for long enough, a pause is over, or a line stands apart:
-- asked often, and mostly answered with no.
-- Lock: none. Whoever acts on the answer checks again.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
select exists (select from foliot.runs where held_by = 'limit')
    or exists (select from foliot.turns where look_at <= (select at from clock)),
    exists (select from foliot.circuits, clock where open_until <= clock.at),
    exists (select from foliot.pauses, clock where until_at <= clock.at),
    exists (select from foliot.runs where held_by in ('pause', 'circuit', 'no_worker'))
from clock

-- name: take_gates(lock)
-- Lock: the gates lock, one for all scheduler nodes. One gatekeeper at a time decides, because what it counts it then
-- uses up. It is let go of with the transaction, after its commit can be seen. Statements that follow in the same
-- transaction take their snapshots after this one, so they see all that the gatekeeper before has decided.
select pg_try_advisory_xact_lock(:lock::bigint)

-- name: admit_runs(now, batch, places, swept, after_concurrency_key, after_rate_key)
-- held -> ready, in order of rank, as far as the limits of their keys allow. A run with two keys must pass both. One
-- that its rate holds back takes no place of its concurrency key, and the other way round: of each line it looks at the
-- first runs for each key of the other kind (up to a hundred of these), and leaves out the keys that let nobody pass.
-- Its start counts for the rate from here on. Looks at keys at which something has changed, and at no others: of runs
-- that have just begun to wait, and of those called by foliot.turns. A key that is full costs nothing until a run of it
-- ends. Of each key it looks at as many runs (:places) as have a place. Should a change ever go unnoticed, a few
-- (:swept) of all keys are looked at in turn, after :after_concurrency_key and :after_rate_key.
-- Lock: the gates lock, taken by the statement before. This statement therefore sees everything that the last
-- gatekeeper has admitted, and nobody else lets runs of a key pass. Runs are locked one by one, and checked again under
-- the lock, because they may be cancelled or replaced meanwhile; one that somebody else has locked is left for the next
-- turn, so that a transaction left open holds up nobody else.
with recursive clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), arrived as materialized (
    select id, options #>> '{concurrency,key}' as key, options #>> '{rate,key}' as rate_key
    from foliot.runs where held_by = 'limit' and seen_rank is distinct from rank order by rank limit :batch::bigint
), called as (
    delete from foliot.turns
    where ctid = any (array(select ctid from foliot.turns where look_at <= (select at from clock) order by look_at
        limit :batch::bigint))
    returning kind, key
), swept (key, place) as (
    (
        select options #>> '{concurrency,key}', 1 from foliot.runs
        where held_by = 'limit' and options #>> '{concurrency,key}' > :after_concurrency_key::text
        order by options #>> '{concurrency,key}' limit 1
    )
    union all
    select (
        select options #>> '{concurrency,key}' from foliot.runs
        where held_by = 'limit' and options #>> '{concurrency,key}' > swept.key order by options #>> '{concurrency,key}'
        limit 1
    ), place + 1
    from swept where swept.key is not null and place < :swept::bigint
), swept_rates (key, place) as (
    (
        select options #>> '{rate,key}', 1 from foliot.runs
        where held_by = 'limit' and options #>> '{rate,key}' > :after_rate_key::text order by options #>> '{rate,key}'
        limit 1
    )
    union all
    select (
        select options #>> '{rate,key}' from foliot.runs
        where held_by = 'limit' and options #>> '{rate,key}' > swept_rates.key order by options #>> '{rate,key}' limit 1
    ), place + 1
    from swept_rates where swept_rates.key is not null and place < :swept::bigint
), places as materialized (
    -- Runs of a key may differ in what limit they give. The larger one of the two ends of the line says how many of
    -- them to look at.
    select looked.key, ends.most, (
        select count(*) from foliot.runs r
        where r.options #>> '{concurrency,key}' = looked.key and r.state in ('ready', 'running')
    ) as number
    from (
        select key from arrived union select key from called where kind = 'concurrency' union select key from swept
    ) as looked
    cross join lateral (
        select max(most) as most from (
            (
                select (r.options #>> '{concurrency,limit}')::bigint as most from foliot.runs r
                where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = looked.key order by r.rank limit 1
            )
            union all
            (
                select (r.options #>> '{concurrency,limit}')::bigint from foliot.runs r
                where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = looked.key order by r.rank desc
                limit 1
            )
        ) as either
    ) as ends
    where ends.most is not null
), rates_of_places as materialized (
    -- The rates of those that wait for a key with a free place; null: runs without one.
    select p.key, p.most - p.number as free, walked.rate_key from places p cross join lateral (
        with recursive walk (rate_key, place) as (
            (
                select r.options #>> '{rate,key}', 1 from foliot.runs r
                where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = p.key
                    and r.options #>> '{rate,key}' is not null
                order by r.options #>> '{rate,key}' limit 1
            )
            union all
            select (
                select r.options #>> '{rate,key}' from foliot.runs r
                where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = p.key
                    and r.options #>> '{rate,key}' > walk.rate_key
                order by r.options #>> '{rate,key}' limit 1
            ), place + 1
            from walk where walk.rate_key is not null and place < 100
        )
        select rate_key from walk where rate_key is not null
        union all
        select null
    ) as walked
    where p.most > p.number
), heads as materialized (
    -- Of a line with more rates than are looked at, its first runs as well, whatever their rates.
    select p.key, p.free, first.id, first.rate_key
    from (select key, free from rates_of_places group by key, free having count(*) > 100) as p cross join lateral (
        select r.id, r.options #>> '{rate,key}' as rate_key from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = p.key and r.cancel is null
        order by r.rank limit least(p.free, :places::bigint)
    ) as first
), paces as materialized (
    select looked.key, ends.period_seconds, ends.most, looked.is_called, (
        select count(*) from foliot.rate_starts s
        where s.rate_key = looked.key and s.started_at > clock.at - ends.period_seconds * interval '1 second'
    ) as number
    from clock cross join (
        select key, bool_or(is_called) as is_called from (
            select rate_key as key, true as is_called from arrived
            union all select key, true from called where kind = 'rate'
            union all select key, true from swept_rates
            union all select rate_key, false from rates_of_places
            union all select rate_key, false from heads
        ) as every group by key
    ) as looked
    cross join lateral (
        select max(most) as most, period_seconds from (
            (
                select (r.options #>> '{rate,limit}')::bigint as most,
                    (r.options #>> '{rate,period_seconds}')::float8 as period_seconds
                from foliot.runs r where r.held_by = 'limit' and r.options #>> '{rate,key}' = looked.key order by r.rank
                limit 1
            )
            union all
            (
                select (r.options #>> '{rate,limit}')::bigint, (r.options #>> '{rate,period_seconds}')::float8
                from foliot.runs r where r.held_by = 'limit' and r.options #>> '{rate,key}' = looked.key
                order by r.rank desc limit 1
            )
        ) as either
        group by period_seconds
    ) as ends
), rooms as materialized (
    select key, max(most - number) as free, bool_or(is_called) as is_called from paces group by key
), in_front as materialized (
    select p.key, p.free, first.id from rates_of_places p join rooms on rooms.key = p.rate_key cross join lateral (
        select r.id from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = p.key
            and r.options #>> '{rate,key}' = p.rate_key and r.cancel is null
        order by r.rank limit greatest(0, least(p.free, rooms.free, :places::bigint))
    ) as first
    union all
    select p.key, p.free, first.id from rates_of_places p cross join lateral (
        select r.id from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = p.key and r.options #>> '{rate,key}' is null
            and r.cancel is null
        order by r.rank limit least(p.free, :places::bigint)
    ) as first
    where p.rate_key is null
    union all
    select key, free, id from heads
), keys_of_rooms as materialized (
    -- The same from the other side: the concurrency keys of those that wait for a rate with room, and how many places
    -- each has.
    select p.key, p.free, walked.concurrency_key, case when walked.concurrency_key is not null then (
        select (r.options #>> '{concurrency,limit}')::bigint from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{rate,key}' = p.key
            and r.options #>> '{concurrency,key}' = walked.concurrency_key
        order by r.rank limit 1
    ) - (
        select count(*) from foliot.runs r
        where r.options #>> '{concurrency,key}' = walked.concurrency_key and r.state in ('ready', 'running')
    ) end as places
    from rooms p cross join lateral (
        with recursive walk (concurrency_key, place) as (
            (
                select r.options #>> '{concurrency,key}', 1 from foliot.runs r
                where r.held_by = 'limit' and r.options #>> '{rate,key}' = p.key
                    and r.options #>> '{concurrency,key}' is not null
                order by r.options #>> '{concurrency,key}' limit 1
            )
            union all
            select (
                select r.options #>> '{concurrency,key}' from foliot.runs r
                where r.held_by = 'limit' and r.options #>> '{rate,key}' = p.key
                    and r.options #>> '{concurrency,key}' > walk.concurrency_key
                order by r.options #>> '{concurrency,key}' limit 1
            ), place + 1
            from walk where walk.concurrency_key is not null and place < 100
        )
        select concurrency_key from walk where concurrency_key is not null
        union all
        select null
    ) as walked
    where p.free > 0 and p.is_called
), in_front_of_rate as materialized (
    select p.key, p.free, first.id from keys_of_rooms p cross join lateral (
        select r.id from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{rate,key}' = p.key
            and r.options #>> '{concurrency,key}' = p.concurrency_key
            and r.cancel is null
        order by r.rank limit greatest(0, least(p.free, p.places, :places::bigint))
    ) as first
    where p.places > 0
    union all
    select p.key, p.free, first.id from keys_of_rooms p cross join lateral (
        select r.id from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{rate,key}' = p.key and r.options #>> '{concurrency,key}' is null
            and r.cancel is null
        order by r.rank limit least(p.free, :places::bigint)
    ) as first
    where p.concurrency_key is null
    union all
    select p.key, p.free, first.id
    from (select key, free from keys_of_rooms group by key, free having count(*) > 100) as p cross join lateral (
        select r.id from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{rate,key}' = p.key and r.cancel is null
        order by r.rank limit least(p.free, :places::bigint)
    ) as first
), candidates as materialized (
    select r.id, r.rank, r.options, r.options #>> '{concurrency,key}' as key,
        (r.options #>> '{concurrency,limit}')::bigint as most,
        r.options #>> '{rate,key}' as rate_key, (r.options #>> '{rate,limit}')::bigint as rate_most,
        (r.options #>> '{rate,period_seconds}')::float8 as period_seconds
    -- As an array: PostgreSQL can't tell how few they are, and would read the whole table to meet them.
    from foliot.runs r where r.id = any (array(select id from in_front union select id from in_front_of_rate))
), open as materialized (
    select c.key, coalesce(p.number, (
        select count(*) from foliot.runs r
        where r.options #>> '{concurrency,key}' = c.key and r.state in ('ready', 'running')
    )) as number
    from (select distinct key from candidates where key is not null) as c left join places p on p.key = c.key
), lately as materialized (
    -- Once for each key, and not for each that waits for it.
    select c.rate_key, c.period_seconds, coalesce(p.number, (
        select count(*) from foliot.rate_starts s
        where s.rate_key = c.rate_key and s.started_at > clock.at - c.period_seconds * interval '1 second'
    )) as number
    from clock cross join (select distinct rate_key, period_seconds from candidates where rate_key is not null) as c
    left join paces p on p.key = c.rate_key and p.period_seconds = c.period_seconds
), possible as (
    -- Whom a full key holds back uses nothing of its rate.
    select c.*, coalesce(open.number, 0) as number, lately.number as starts
    from candidates c
    left join open on open.key = c.key
    left join lately on lately.rate_key = c.rate_key and lately.period_seconds = c.period_seconds
    where c.key is null or coalesce(open.number, 0) < c.most
), in_time as materialized (
    select * from (
        select p.*, p.rate_key is null or p.starts + row_number() over (partition by p.rate_key
            order by p.rank, p.id) <= p.rate_most as is_in_time
        from possible p
    ) as paced
    where is_in_time
), passing as materialized (
    select * from (
        select t.*, t.key is null or t.number + row_number() over (partition by t.key
            order by t.rank, t.id) <= t.most as has_place from in_time t
    ) as placed
    where has_place
), locked as (
    select r.id from foliot.runs r join passing p on p.id = r.id
    where r.held_by = 'limit' and r.cancel is null and r.options is not distinct from p.options
    for update of r skip locked
), admitted as (
    update foliot.runs set state = 'ready', held_by = null where id = any (array(select id from locked))
    returning id, queue, options #>> '{concurrency,key}' as key, options #>> '{rate,key}' as rate_key
), started as (
    insert into foliot.rate_starts (rate_key, started_at) select a.rate_key, clock.at from admitted a, clock
    where a.rate_key is not null
), roomy as materialized (
    -- There was room for more than were looked at.
    select 'concurrency' as kind, f.key from in_front f left join admitted a on a.id = f.id
    group by f.key, f.free having f.free > :places::bigint and count(*) >= :places::bigint and count(a.id) > 0
    union all
    select 'rate', f.key from in_front_of_rate f left join admitted a on a.id = f.id
    group by f.key, f.free having f.free > :places::bigint and count(*) >= :places::bigint and count(a.id) > 0
), lined_up as (
    -- Not where there is room for more: those pass in the next turn, and need not be written twice.
    update foliot.runs set seen_rank = rank
    where id = any (array(
        select id from foliot.runs
        where id = any (array(
            select a.id from arrived a
            where not exists (select from roomy r where r.key = case r.kind when 'rate' then a.rate_key else a.key end)
            except
            select id from admitted
        )) and held_by = 'limit' for update skip locked
    ))
), again as (
    insert into foliot.turns (kind, key, look_at)
    select kind, key, '-infinity'::timestamptz from roomy
    union all
    -- The last places of a key went to others: what this one would have used of its rate is free for the next.
    select distinct 'rate', t.rate_key, '-infinity'::timestamptz from in_time t
    where t.rate_key is not null and t.id not in (select id from passing) and t.key in (select key from admitted)
    union all
    -- Somebody else has the run that would have passed.
    select case when p.key is not null then 'concurrency' else 'rate' end, coalesce(p.key, p.rate_key),
        clock.at + interval '0.2 seconds'
    from clock cross join passing p where p.id not in (select id from admitted)
    union all
    -- When the next start leaves the period of a rate that is used up.
    select 'rate', due.key, due.at from (
        select p.key, p.period_seconds * interval '1 second' + case
                when p.most <= coalesce(a.number, 0) then clock.at
                else (
                    select s.started_at from foliot.rate_starts s
                    where s.rate_key = p.key order by s.started_at desc offset p.most - coalesce(a.number, 0) - 1
                    limit 1
                )
            end as at
        from clock cross join paces p
        left join (select rate_key, count(*) as number from admitted group by rate_key) as a on a.rate_key = p.key
        where p.number + coalesce(a.number, 0) >= p.most
    ) as due
    cross join clock left join lateral (
        select t.look_at from foliot.turns t where t.kind = 'rate' and t.key = due.key and t.look_at > clock.at
        order by t.look_at limit 1
    ) as known on true
    where known.look_at is null or known.look_at > due.at
)
select array(select queue from admitted), array(select key from places),
    (select count(*) from arrived) >= :batch::bigint or (select count(*) from called) >= :batch::bigint,
    coalesce((select key from swept where place = :swept::bigint), ''),
    coalesce((select key from swept_rates where place = :swept::bigint), '')

-- name: settle_full_keys(keys, batch)
-- Where a job says what is to happen at the limit: the newest that wait are dropped, or the oldest under way are asked
-- to make room. Looks at the keys (:keys) that admit_runs has looked at, and at the newest runs of each, so many
-- (:batch) at a time.
-- Lock: the gates lock, in the same transaction as admit_runs. What is marked is locked and checked again: a run may
-- have ended, or have been replaced. One that somebody else has locked is left alone: it is just being changed, and its
-- key is looked at again in its turn.
with waiting as materialized (
    select k.key, newest.* from unnest(:keys::text[]) as k (key) cross join lateral (
        select r.id, r.options #>> '{concurrency,at_limit}' as at_limit,
            (r.options #>> '{concurrency,limit}')::bigint as most,
            row_number() over (order by r.rank desc) as place
        from foliot.runs r
        where r.held_by = 'limit' and r.options #>> '{concurrency,key}' = k.key and r.cancel is null
            and r.options #>> '{concurrency,at_limit}' in ('drop_new', 'cancel_old')
        order by r.rank desc limit :batch::bigint
    ) as newest
), under_way as materialized (
    select r.id, r.options #>> '{concurrency,key}' as key,
        row_number() over (partition by r.options #>> '{concurrency,key}' order by r.started_at nulls first) as age
    from foliot.runs r
    where r.options #>> '{concurrency,key}' = any (array(select key from waiting)) and r.state in ('ready', 'running')
        and r.cancel is null
), full_keys as (
    select key, count(*) as number from under_way group by key
), dropped as (
    select w.id from waiting w join full_keys f on f.key = w.key where w.at_limit = 'drop_new' and f.number >= w.most
), ousting as (
    select u.id from under_way u join full_keys f on f.key = u.key
    join (select key, min(most) as most, count(*) as number from waiting where at_limit = 'cancel_old'
        group by key) as w on w.key = u.key
    where f.number >= w.most and u.age <= least(w.number, w.most)
), marks as (
    select r.id, 'its concurrency key was at its limit' as message from foliot.runs r
    where r.id = any (array(select id from dropped)) and r.held_by = 'limit' and r.cancel is null
    for update skip locked
), places as (
    select r.id, 'a newer run of its concurrency key takes its place' as message from foliot.runs r
    join (
        select id, true as is_under_way from ousting
        union all
        select w.id, false from waiting w where w.at_limit = 'cancel_old' and w.place > w.most
    ) as o on o.id = r.id
    where r.cancel is null and case when o.is_under_way then r.state in ('ready',
        'running') else r.held_by = 'limit' end
    for update of r skip locked
), marked as (
    update foliot.runs r
    set cancel = jsonb_build_object('reason', 'limit', 'message', m.message, 'is_forced', false)
    from (select * from marks union all select * from places) as m where r.id = m.id
    returning r.worker_id
)
select worker_id from marked where worker_id is not null

-- name: forget_rate_starts(limit, now)
-- Those that no period reaches back to, oldest first, some at a time. Rows of the past are never changed, so nothing
-- can become untrue of one while it is waited for; one that another node is deleting is stepped over.
delete from foliot.rate_starts where ctid = any (array(
    select ctid from foliot.rate_starts
    where started_at < (select coalesce(:now::timestamptz, clock_timestamp()) - interval '1 day')
    order by started_at limit :limit::bigint for update skip locked
))

-- name: park_runs(now, head, long)
-- ready -> held, out of the way of the claims, which would step over them one by one: long lines (:long) of runs that
-- nobody may start, because their task is paused, its circuit is open, or no worker of their queue knows it. Looks at
-- the head (:head) of a queue only, because only that is stepped over, and only if there is such a run among its very
-- first. What has a place under a limit, or belongs to a recurring job, stays.
-- Lock: the row of each run, under which everything that was true of it is checked again. Another node may have made
-- one of them the probe of its circuit, a worker may have claimed it, a client may have replaced it. A pause or circuit
-- that ends meanwhile is no harm: unpark_runs brings the line back.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), lines as (
    (select queue from foliot.runs where state = 'ready' order by queue limit 1)
    union all
    select (select queue from foliot.runs where state = 'ready' and queue > l.queue order by queue limit 1)
    from lines l where l.queue is not null
), closed as materialized (
    select task, 'circuit' as why from foliot.circuits where open_until is not null
    union
    select p.name, 'pause' from foliot.pauses p, clock
    where p.kind = 'task' and (p.until_at is null or p.until_at > clock.at)
        and not exists (select from foliot.circuits c where c.task = p.name and c.open_until is not null)
), known as materialized (
    select distinct q.name as queue, t.name as task
    from foliot.workers w cross join jsonb_object_keys(w.queues) as q (name) cross
    join unnest(w.tasks) as t (name), clock
    where w.expires_at > clock.at
), suspicious as materialized (
    select l.queue from lines l where exists (
        select from (select r.task from foliot.runs r where r.state = 'ready' and r.queue = l.queue order by r.rank
            limit 100) as first
        where first.task in (select task from closed)
            or not exists (select from known k where k.queue = l.queue and k.task = first.task)
    )
), head as materialized (
    select first.id, first.task, l.queue,
        coalesce(c.why, case when k.task is null and l.queue in (select queue from known) then 'no_worker' end) as why
    from suspicious l cross join lateral (
        select r.id, r.task, r.is_probe, r.options, r.job_id, r.cancel
        from foliot.runs r where r.state = 'ready' and r.queue = l.queue order by r.rank limit :head::bigint
    ) as first
    left join closed c on c.task = first.task
    left join known k on k.queue = l.queue and k.task = first.task
    where first.is_probe is not true and foliot.has_limits(first.options) is not true and first.job_id is null
        and first.cancel is null
), locked as (
    select r.id, h.why from foliot.runs r join head h on h.id = r.id
    where r.id = any (array(
        select h.id from head h
        where h.why is not null and h.queue in (select queue from head where why is not null group by queue
            having count(*) >= :long::bigint)
    ))
        and r.state = 'ready' and r.queue = h.queue and r.task = h.task and r.is_probe is not true
        and foliot.has_limits(r.options) is not true and r.cancel is null
    order by r.id for update of r skip locked
)
update foliot.runs r set state = 'held', held_by = locked.why from locked where r.id = locked.id

-- name: unpark_runs(now, head)
-- held -> ready, in order of rank and some at a time (:head) of each line: those that somebody may start again.
-- Lock: the row of each run, under which its line is checked again; what another node is bringing back is stepped over.
-- A pause or circuit that begins meanwhile is no harm: claims ask for it themselves, and park_runs puts the line aside
-- again.
with recursive clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), lines as (
    (
        select queue, task from foliot.runs
        where held_by in ('pause', 'circuit', 'no_worker') order by queue, task limit 1
    )
    union all
    select next.queue, next.task from lines l cross join lateral (
        select r.queue, r.task from foliot.runs r
        where r.held_by in ('pause', 'circuit', 'no_worker') and (r.queue, r.task) > (l.queue, l.task)
        order by r.queue, r.task limit 1
    ) as next
), free as (
    select l.queue, l.task from lines l, clock
    where not exists (select from foliot.circuits c where c.task = l.task and c.open_until is not null)
        and not exists (
            select from foliot.pauses p where p.kind = 'task' and p.name = l.task and (p.until_at is null
                or p.until_at > clock.at)
        )
        and exists (select from foliot.workers w
            where w.expires_at > clock.at and w.queues ? l.queue and l.task = any (w.tasks))
)
update foliot.runs set state = 'ready', held_by = null
where id = any (array(
    select r.id from free cross join lateral (
        select first.id from foliot.runs first
        where first.held_by in ('pause', 'circuit', 'no_worker') and first.queue = free.queue and first.task = free.task
        order by first.rank limit :head::bigint for update skip locked
    ) as r
))
returning queue

-- name: put_pause(kind, name, until, reason, actor, now)
-- Paused again, it gets the new reason and end.
insert into foliot.pauses (kind, name, paused_at, until_at, reason, actor)
values (:kind::text, :name::text, coalesce(:now::timestamptz, clock_timestamp()), :until::timestamptz, :reason::text,
    :actor::text)
on conflict (kind, name) do update set until_at = excluded.until_at, reason = excluded.reason, actor = excluded.actor

-- name: delete_pause(kind, name)
-- Goes on.
delete from foliot.pauses where kind = :kind::text and name = :name::text returning true

-- name: list_pauses(now)
-- Those that hold now.
select kind, name, paused_at, until_at, reason, actor from foliot.pauses
where until_at is null or until_at > coalesce(:now::timestamptz, clock_timestamp()) order by kind, name

-- name: end_pauses(now)
-- Those that are over, so that what they held back is claimed at once: the names of their queues.
-- Lock: the row of each pause. The condition is on that row, so PostgreSQL checks it again when it had to wait: a pause
-- that was prolonged meanwhile stays.
delete from foliot.pauses where until_at <= coalesce(:now::timestamptz, clock_timestamp()) returning kind, name

-- name: put_queue(name, max_running, max_depth, now, updated_at)
-- Limits of a queue; null: none. Only over those that were read, which the instant of their last change tells
-- (:updated_at; null: there were none): it grows with every change, whatever the clock does. Rows are never deleted.
insert into foliot.queues as q (name, max_running, max_depth, updated_at)
values (:name::text, :max_running::bigint, :max_depth::bigint, coalesce(:now::timestamptz, clock_timestamp()))
on conflict (name) do update
set max_running = excluded.max_running, max_depth = excluded.max_depth,
    updated_at = greatest(excluded.updated_at, q.updated_at + interval '1 microsecond')
where q.updated_at = :updated_at::timestamptz
returning true

-- name: get_queue(name)
-- The limits of a queue.
select max_running, max_depth, updated_at from foliot.queues where name = :name::text

-- name: full_queues
-- Those that hold more than they may, of the queues that have a bound.
select q.name from foliot.queues q
where q.max_depth is not null and (
    select count(*) from (
        (select from foliot.runs r where r.state = 'ready' and r.queue = q.name limit q.max_depth)
        union all
        (select from foliot.runs r where r.held_by in ('pause', 'circuit', 'no_worker') and r.queue = q.name
            limit q.max_depth)
    ) as counted
) >= q.max_depth

-- name: record_failures(tasks, failures, bounds, open_seconds, now)
-- Failures in a row; at the bound the circuit opens, and a probe that failed opens it anew.
insert into foliot.circuits as c (task, failures, open_until, updated_at)
select t.task, t.failures, case when t.failures >= t.most then clock.at + t.seconds * interval '1 second' end, clock.at
from unnest(:tasks::text[], :failures::bigint[], :bounds::bigint[], :open_seconds::float8[]) as t (task, failures, most,
    seconds),
    (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock
order by t.task
on conflict (task) do update
set failures = c.failures + excluded.failures, probe_id = null, updated_at = excluded.updated_at,
    open_until = case
        when c.open_until is not null and c.probe_id is null then c.open_until
        when c.failures + excluded.failures >= (select u.most
            from unnest(:tasks::text[], :bounds::bigint[]) as u (task, most) where u.task = c.task)
            then excluded.updated_at + (
                select u.seconds from unnest(:tasks::text[], :open_seconds::float8[]) as u (task, seconds)
                where u.task = c.task
            ) * interval '1 second'
    end
returning task, open_until is not null

-- name: record_successes(tasks, run_ids)
-- A success ends the row of failures, and closes the circuit if it was the probe's. Nothing is written for a healthy
-- task.
delete from foliot.circuits where task = any (:tasks::text[]) and (open_until is null
    or probe_id = any (:run_ids::uuid[])) returning task

-- name: send_probes(now, probe_seconds, head)
-- One run of each task whose circuit has been open for long enough. A probe is fine while it runs, and for a while
-- (:probe_seconds, seconds) as long as nothing keeps it from being started. One that was lost, parked, cancelled or
-- moved, or whose queue was paused, filled up or is no longer served, makes way for another; so does one that just does
-- not start, because all workers of its queue are busy, say. Else it would keep the circuit open for all the other
-- queues. The next one comes from the next queue by name that has one among its first so many (:head).
-- Lock: the gates lock, taken by the statement before, so that two nodes never choose at the same time; the row of the
-- circuit, which a worker may be closing or opening anew; and the rows of the runs. The old probe loses its mark only
-- if nobody has claimed it under that lock, and only then is the new one marked, so there is never a second one under
-- way.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), due as materialized (
    select c.task, c.probe_id, c.probe_at from foliot.circuits c
    where c.open_until <= (select at from clock) order by c.task for update skip locked
), served as materialized (
    select distinct due.task, q.name as queue
    from due join foliot.workers w on due.task = any (w.tasks) cross join jsonb_object_keys(w.queues) as q (name), clock
    where w.expires_at > clock.at and w.draining_at is null
        and not exists (
            select from foliot.pauses p
            where (p.until_at is null or p.until_at > clock.at)
                and (p.kind = 'everything' or (p.kind = 'queue' and p.name = q.name)
                    or (p.kind = 'task' and p.name = due.task))
        )
        and not exists (
            select from foliot.queues l
            where l.name = q.name and l.max_running <= (select count(*) from foliot.runs r
                where r.state = 'running' and r.queue = l.name)
        )
), under_way as materialized (
    select due.task, r.id, r.queue, r.state = 'running' as is_running,
        coalesce(due.probe_at > clock.at - :probe_seconds::float8 * interval '1 second', false) as is_recent,
        r.state = 'ready' and r.task = due.task and r.cancel is null
        and (r.expires_at is null or r.started_at is not null or r.expires_at > clock.at)
            and exists (select from served s where s.task = due.task and s.queue = r.queue) as can_start
    from clock cross join due join foliot.runs r on r.id = due.probe_id and r.is_probe
), chosen as materialized (
    select distinct on (s.task) s.task, s.queue, first.id, u.id as instead_of
    from clock cross join served s left join under_way u on u.task = s.task cross join lateral (
        (
            select head.id, head.rank from (
                select r.id, r.rank, r.task, r.cancel, r.expires_at, r.started_at from foliot.runs r
                where r.state = 'ready' and r.queue = s.queue order by r.rank limit :head::bigint
            ) as head
            where head.task = s.task and head.cancel is null
                and (head.expires_at is null or head.started_at is not null or head.expires_at > clock.at)
            order by head.rank limit 1
        )
        union all
        (
            select line.id, line.rank from (
                select r.id, r.rank, r.cancel, r.expires_at, r.started_at from foliot.runs r
                where r.held_by in ('pause', 'circuit', 'no_worker') and r.queue = s.queue and r.task = s.task
                order by r.rank limit :head::bigint
            ) as line
            where line.cancel is null and (line.expires_at is null or line.started_at is not null
                or line.expires_at > clock.at)
            order by line.rank limit 1
        )
    ) as first
    where u.id is null or not (u.is_running or u.can_start and (u.is_recent or s.queue = u.queue))
    order by s.task, case when s.queue > u.queue then 1 when s.queue < u.queue then 2 when s.queue = u.queue then 3 end,
        case when u.id is not null then s.queue end, first.rank
), given_up as materialized (
    select r.id from foliot.runs r join chosen c on c.instead_of = r.id and c.id <> r.id
    where r.state <> 'running' for update of r skip locked
), unmarked as (
    update foliot.runs set is_probe = null where id = any (array(select id from given_up))
), taken as (
    select r.id from foliot.runs r join chosen c on c.id = r.id
    where (r.state = 'ready' or r.held_by in ('pause', 'circuit', 'no_worker')) and r.task = c.task
        and r.queue = c.queue and r.cancel is null
        and (c.instead_of is null or c.instead_of = c.id or c.instead_of in (select id from given_up))
    for update of r skip locked
), marked as (
    update foliot.runs set is_probe = true, state = 'ready', held_by = null where id = any (array(select id from taken))
    returning id, task, queue
), noted as (
    update foliot.circuits c set probe_id = marked.id, probe_at = clock.at from marked, clock where c.task = marked.task
)
select queue from marked

-- name: list_circuits
-- Tasks that have failed last.
select task, failures, open_until, probe_id from foliot.circuits order by task
