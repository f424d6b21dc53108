-- Lists of runs. Each looks at a bounded number of rows ($5 or $4) below its cursor, in the order of an index, and says
-- how far it got: what a page costs depends neither on how much history there is nor on how rare is what is asked for.

-- name: list_runs
-- Live and finished runs, latest id first. $1 picks where to look: what is running, what failed and what has tags has
-- an index of its own. With `offset 0` the few are found by it and then sorted, instead of walking through all ids; so
-- are the children of one that has few.
with scanned as materialized (
    select * from (
        (select * from foliot.all_runs where $1::text in ('all', 'live') and is_live and id < $2::uuid and id >= $3::uuid order by id desc limit $5::bigint)
        union all
        (
            select * from foliot.all_runs
            where $1::text in ('all', 'history') and not is_live and id < $2::uuid and id >= $4::uuid and finished_at >= $6::timestamptz
            order by id desc limit $5::bigint
        )
        union all
        (
            select * from (select * from foliot.all_runs where $1::text = 'running' and is_live and state = 'running' offset 0) as few
            where id < $2::uuid and id >= $3::uuid order by id desc limit $5::bigint
        )
        union all
        (
            select * from foliot.all_runs
            where $1::text = 'failed' and not is_live and state = 'failed' and id < $2::uuid and id >= $4::uuid
                and finished_at >= $6::timestamptz
            order by id desc limit $5::bigint
        )
        union all
        (
            select * from (
                select * from foliot.all_runs
                where $1::text = 'children' and parent_id = $12::uuid and (is_live or finished_at >= $6::timestamptz) offset 0
            ) as few
            where id < $2::uuid and id >= $3::uuid order by id desc limit $5::bigint
        )
        union all
        (
            select * from foliot.all_runs
            where $1::text = 'tagged' and is_live and is_tagged and id < $2::uuid and id >= $3::uuid order by id desc limit $5::bigint
        )
        union all
        (
            select * from foliot.all_runs
            where $1::text = 'tagged' and not is_live and is_tagged and id < $2::uuid and id >= $4::uuid and finished_at >= $6::timestamptz
            order by id desc limit $5::bigint
        )
    ) as found
    order by id desc limit $5::bigint
)
select s.count, s.id, w.*
from (select count(*) as count, (array_agg(id order by id))[1] as id from scanned) as s left join (
    select id, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as,
        error - 'traceback' as error, due_at, created_at, started_at, finished_at, parent_id, step, tags
    from scanned
    where ($7::text[] is null or state || case when attempt > 0 and state in ('ready', 'scheduled') then '+' else '' end = any ($7::text[]))
        and ($8::text is null or queue = $8::text)
        and ($9::text is null or task = $9::text)
        and ($10::text is null
            or strpos(lower(concat_ws(E'\n', name, task, error ->> 'kind', error ->> 'message')), lower($10::text)) > 0)
        and ($12::uuid is null or parent_id = $12::uuid)
        and ($13::text is null or tags ? $13::text)
        and foliot.namespace_of(queue) = $14::text
    order by id desc limit $11::bigint
) as w on true
order by w.id desc

-- name: list_job_runs
-- The runs of one recurring job, latest tick first.
with scanned as materialized (
    select * from foliot.all_runs
    where job_id = $1::uuid and tick_at <= $2::timestamptz and (tick_at, id) < ($2::timestamptz, $3::uuid) and tick_at >= $5::timestamptz
    order by tick_at desc, id desc limit $4::bigint
)
select s.count, s.tick_at, s.id, w.*
from (
    select count(*) as count, (array_agg(tick_at order by tick_at, id))[1] as tick_at, (array_agg(id order by tick_at, id))[1] as id from scanned
) as s left join (
    select id, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as,
        error - 'traceback' as error, due_at, created_at, started_at, finished_at, parent_id, step, tags
    from scanned
    where ($6::text[] is null or state || case when attempt > 0 and state in ('ready', 'scheduled') then '+' else '' end = any ($6::text[]))
        and ($7::text is null or queue = $7::text)
        and ($8::text is null or task = $8::text)
        and ($9::text is null
            or strpos(lower(concat_ws(E'\n', name, task, error ->> 'kind', error ->> 'message')), lower($9::text)) > 0)
        and ($11::text is null or tags ? $11::text)
        and foliot.namespace_of(queue) = $12::text
    order by tick_at desc, id desc limit $10::bigint
) as w on true
order by w.tick_at desc, w.id desc

-- name: list_attempts
-- Earlier attempts have rows of their own; the last one is on the run. A run that ended while nobody held it has none
-- beside those.
select token, attempt, worker_id, started_at, finished_at, outcome, error, octet_length(output) as output_bytes
from foliot.attempts where run_id = $1::uuid and finished_at >= $2::timestamptz
union all
select token, attempt, worker_id, started_at, null, 'running', null, null from foliot.runs where id = $1::uuid and state = 'running'
union all
select token, attempt, worker_id, started_at, finished_at, case state when 'failed' then coalesce(reason, 'error') else state end, error,
    octet_length(output)
from foliot.history where id = $1::uuid and finished_at >= $2::timestamptz and worker_id is not null
order by token
