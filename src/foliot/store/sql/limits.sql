-- Concurrency limits and rate limits. A run with a limit is held until admit_runs makes it ready; a run without one
-- never comes here.

-- name: admit_runs(now, batch, places, swept, after_concurrency_key, after_rate_key)
-- held -> ready, in order of rank, within the limits of each run's keys. A run with two keys must pass both. A run that
-- its rate holds back takes no place of its concurrency key, and the other way round: the statement walks the keys of
-- the other kind (up to a hundred), takes the first runs of each, and skips keys that admit nobody. An admitted run
-- counts towards its rate from now on.
--
-- Only keys where something has changed are looked at: those of runs that have just begun to wait (their seen_rank is
-- not their rank), and those in foliot.turns. A full key costs nothing until one of its runs ends. Of each key, only as
-- many runs are looked at as there are free places, and at most :places. In case a change ever goes unnoticed, each
-- turn also looks at a few keys of each kind (:swept), in order of key, after :after_concurrency_key and
-- :after_rate_key.
--
-- Lock: the gates lock, taken by the statement before. This statement therefore sees every run that the last gatekeeper
-- admitted, and no other session admits runs. Each run is locked and checked again, because it may be cancelled or
-- replaced meanwhile. A run that another session has locked waits for the next turn, so that an open transaction delays
-- no other run.
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
    -- Runs of one key may carry different limits. The larger one of its first and last run bounds the search.
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
    -- The rate keys of the runs that wait for a concurrency key with a free place; null: runs without a rate.
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
    -- If a key has more rate keys than are walked: its first runs as well, whatever their rate keys.
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
    -- The same from the other side: the concurrency keys of the runs that wait for a rate with room, and the free
    -- places of each.
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
    -- As an array, because PostgreSQL can't estimate how few they are, and would read the whole table to join them.
    from foliot.runs r where r.id = any (array(select id from in_front union select id from in_front_of_rate))
), open as materialized (
    select c.key, coalesce(p.number, (
        select count(*) from foliot.runs r
        where r.options #>> '{concurrency,key}' = c.key and r.state in ('ready', 'running')
    )) as number
    from (select distinct key from candidates where key is not null) as c left join places p on p.key = c.key
), lately as materialized (
    -- Once for each key, not for each run that waits for it.
    select c.rate_key, c.period_seconds, coalesce(p.number, (
        select count(*) from foliot.rate_starts s
        where s.rate_key = c.rate_key and s.started_at > clock.at - c.period_seconds * interval '1 second'
    )) as number
    from clock cross join (select distinct rate_key, period_seconds from candidates where rate_key is not null) as c
    left join paces p on p.key = c.rate_key and p.period_seconds = c.period_seconds
), possible as (
    -- A run that a full concurrency key holds back uses nothing of its rate.
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
    -- Keys with room for more runs than were looked at.
    select 'concurrency' as kind, f.key from in_front f left join admitted a on a.id = f.id
    group by f.key, f.free having f.free > :places::bigint and count(*) >= :places::bigint and count(a.id) > 0
    union all
    select 'rate', f.key from in_front_of_rate f left join admitted a on a.id = f.id
    group by f.key, f.free having f.free > :places::bigint and count(*) >= :places::bigint and count(a.id) > 0
), lined_up as (
    -- Runs of keys with more room pass in the next turn, so they need not be written twice.
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
    -- Other runs took the last places of its concurrency key, so its share of the rate is free for the next run.
    select distinct 'rate', t.rate_key, '-infinity'::timestamptz from in_time t
    where t.rate_key is not null and t.id not in (select id from passing) and t.key in (select key from admitted)
    union all
    -- Another session has locked the run that would have passed.
    select case when p.key is not null then 'concurrency' else 'rate' end, coalesce(p.key, p.rate_key),
        clock.at + interval '0.2 seconds'
    from clock cross join passing p where p.id not in (select id from admitted)
    union all
    -- A rate that is used up has room again when its next start leaves the period.
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
-- Applies `at_limit`: drops the newest waiting runs, or cancels the oldest running ones to make room. It looks at the
-- keys that admit_runs has looked at, and at the newest runs of each (:batch).
--
-- Lock: the gates lock, in the same transaction as admit_runs. Each marked run is locked and checked again, because it
-- may have ended or been replaced. A run that another session has locked is skipped: it is being changed, and its key
-- gets another turn.
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
-- Deletes starts that no rate period reaches back to, oldest first. Such rows never change, so they need no second
-- check; a row that another node is deleting is skipped.
delete from foliot.rate_starts where ctid = any (array(
    select ctid from foliot.rate_starts
    where started_at < (select coalesce(:now::timestamptz, clock_timestamp()) - interval '1 day')
    order by started_at limit :limit::bigint for update skip locked
))
