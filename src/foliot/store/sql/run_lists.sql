-- Lists of runs. Each looks at a bounded number of rows ($5 or $4) below its cursor, in the order of an index, and says
-- how far it got: what a page costs depends neither on how much history there is nor on how rare is what is asked for.

-- name: list_runs(
--     place, before, live_from, history_from, scan, finished_from, states, queue, task, text, limit, parent_id, tag,
--     namespace
-- )
-- Live and finished runs, latest id first. :place picks where to look: what is running, what failed and what has tags
-- has an index of its own. With `offset 0` the few are found by it and then sorted, instead of walking through all ids;
-- so are the children of one that has few.
with scanned as materialized (
    select * from (
        (select * from foliot.all_runs where :place::text in ('all',
            'live') and is_live and id < :before::uuid and id >= :live_from::uuid order by id desc limit :scan::bigint)
        union all
        (
            select * from foliot.all_runs
            where :place::text in ('all', 'history') and not is_live and id < :before::uuid
                and id >= :history_from::uuid and finished_at >= :finished_from::timestamptz
            order by id desc limit :scan::bigint
        )
        union all
        (
            select * from (select * from foliot.all_runs
                where :place::text = 'running' and is_live and state = 'running' offset 0) as few
            where id < :before::uuid and id >= :live_from::uuid order by id desc limit :scan::bigint
        )
        union all
        (
            select * from foliot.all_runs
            where :place::text = 'failed' and not is_live and state = 'failed' and id < :before::uuid
                and id >= :history_from::uuid
                and finished_at >= :finished_from::timestamptz
            order by id desc limit :scan::bigint
        )
        union all
        (
            select * from (
                select * from foliot.all_runs
                where :place::text = 'children' and parent_id = :parent_id::uuid
                    and (is_live or finished_at >= :finished_from::timestamptz) offset 0
            ) as few
            where id < :before::uuid and id >= :live_from::uuid order by id desc limit :scan::bigint
        )
        union all
        (
            select * from foliot.all_runs
            where :place::text = 'tagged' and is_live and is_tagged and id < :before::uuid and id >= :live_from::uuid
            order by id desc limit :scan::bigint
        )
        union all
        (
            select * from foliot.all_runs
            where :place::text = 'tagged' and not is_live and is_tagged and id < :before::uuid
                and id >= :history_from::uuid and finished_at >= :finished_from::timestamptz
            order by id desc limit :scan::bigint
        )
    ) as found
    order by id desc limit :scan::bigint
)
select s.count, s.id, w.*
from (select count(*) as count, (array_agg(id order by id))[1] as id from scanned) as s left join (
    select id, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as,
        error - 'traceback' as error, due_at, created_at, started_at, finished_at, parent_id, step, tags
    from scanned
    where (:states::text[] is null or state || case when attempt > 0
        and state in ('ready', 'scheduled') then '+' else '' end = any (:states::text[]))
        and (:queue::text is null or queue = :queue::text)
        and (:task::text is null or task = :task::text)
        and (:text::text is null
            or strpos(lower(concat_ws(E'\n', name, task, error ->> 'kind', error ->> 'message')),
                lower(:text::text)) > 0)
        and (:parent_id::uuid is null or parent_id = :parent_id::uuid)
        and (:tag::text is null or tags ? :tag::text)
        and foliot.namespace_of(queue) = :namespace::text
    order by id desc limit :limit::bigint
) as w on true
order by w.id desc

-- name: list_job_runs(job_id, before_at, before_id, scan, since, states, queue, task, text, limit, tag, namespace)
-- The runs of one recurring job, latest tick first.
with scanned as materialized (
    select * from foliot.all_runs
    where job_id = :job_id::uuid and tick_at <= :before_at::timestamptz
        and (tick_at, id) < (:before_at::timestamptz, :before_id::uuid) and tick_at >= :since::timestamptz
    order by tick_at desc, id desc limit :scan::bigint
)
select s.count, s.tick_at, s.id, w.*
from (
    select count(*) as count, (array_agg(tick_at order by tick_at, id))[1] as tick_at,
        (array_agg(id order by tick_at, id))[1] as id from scanned
) as s left join (
    select id, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as,
        error - 'traceback' as error, due_at, created_at, started_at, finished_at, parent_id, step, tags
    from scanned
    where (:states::text[] is null or state || case when attempt > 0
        and state in ('ready', 'scheduled') then '+' else '' end = any (:states::text[]))
        and (:queue::text is null or queue = :queue::text)
        and (:task::text is null or task = :task::text)
        and (:text::text is null
            or strpos(lower(concat_ws(E'\n', name, task, error ->> 'kind', error ->> 'message')),
                lower(:text::text)) > 0)
        and (:tag::text is null or tags ? :tag::text)
        and foliot.namespace_of(queue) = :namespace::text
    order by tick_at desc, id desc limit :limit::bigint
) as w on true
order by w.tick_at desc, w.id desc

-- name: list_attempts(run_id, finished_from)
-- Earlier attempts have rows of their own; the last one is on the run. A run that ended while nobody held it has none
-- beside those.
select token, attempt, worker_id, started_at, finished_at, outcome, error, octet_length(output) as output_bytes
from foliot.attempts where run_id = :run_id::uuid and finished_at >= :finished_from::timestamptz
union all
select token, attempt, worker_id, started_at, null, 'running', null, null from foliot.runs
where id = :run_id::uuid and state = 'running'
union all
select token, attempt, worker_id, started_at, finished_at,
    case state when 'failed' then coalesce(reason, 'error') else state end, error,
    octet_length(output)
from foliot.history where id = :run_id::uuid and finished_at >= :finished_from::timestamptz and worker_id is not null
order by token
