-- Lists of runs. Each statement reads a bounded number of rows (:scan), in the order of an index, and says how far it
-- got. So the cost of a page depends neither on the length of history nor on how rare the wanted runs are.

-- fragment: shown
-- The columns of a run in lists. The payload is read only for a filter on it.
id, is_live, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as, error,
        due_at, created_at, started_at, finished_at, parent_id, step, tags,
        case when :reads_payload::boolean then payload end as payload

-- fragment: wanted
-- The filters, as one row. A filter that is null is not set.
wanted as materialized (
    select * from jsonb_to_record(:wanted::jsonb) as w (
        namespace text, states text[], reasons text[], not_reasons text[], queues text[], not_queues text[],
        tasks text[], not_tasks text[], text text, not_text text, error text, not_error text, parent uuid, tags text[],
        not_tags text[], workers uuid[], not_workers uuid[], attempt_from bigint, attempt_to bigint,
        priority_from bigint, priority_to bigint, seconds_from float8, seconds_to float8, payload jsonb,
        now timestamptz
    )
)

-- fragment: seconds
-- The duration of the last attempt; null for a run that has not started.
extract(epoch from coalesce(s.finished_at,
        case when s.state = 'running' then coalesce(f.now, clock_timestamp()) end) - s.started_at)::float8

-- fragment: is_wanted
-- Whether the run `s` passes the filters `f`. Words for states are those of `RunFilter`; names are patterns of LIKE.
foliot.namespace_of(s.queue) = f.namespace
        and (f.states is null or s.state || case when s.attempt > 0
            and s.state in ('ready', 'scheduled') then '+' else '' end = any (f.states))
        and (f.reasons is null or s.reason = any (f.reasons))
        and (f.not_reasons is null or not coalesce(s.reason = any (f.not_reasons), false))
        and (f.queues is null or s.queue like any (f.queues))
        and (f.not_queues is null or not s.queue like any (f.not_queues))
        and (f.tasks is null or s.task like any (f.tasks))
        and (f.not_tasks is null or not s.task like any (f.not_tasks))
        and (f.text is null or strpos(lower(concat_ws(E'\n', s.name, s.task, s.error ->> 'kind',
            s.error ->> 'message')), lower(f.text)) > 0)
        and (f.not_text is null or strpos(lower(concat_ws(E'\n', s.name, s.task, s.error ->> 'kind',
            s.error ->> 'message')), lower(f.not_text)) = 0)
        and (f.error is null or strpos(lower(concat_ws(E'\n', s.error ->> 'kind', s.error ->> 'message')),
            lower(f.error)) > 0)
        and (f.not_error is null or strpos(lower(concat_ws(E'\n', s.error ->> 'kind', s.error ->> 'message')),
            lower(f.not_error)) = 0)
        and (f.parent is null or s.parent_id = f.parent)
        and (f.tags is null or s.tags ?& f.tags)
        and (f.not_tags is null or not coalesce(s.tags ?| f.not_tags, false))
        and (f.workers is null or s.worker_id = any (f.workers))
        and (f.not_workers is null or not coalesce(s.worker_id = any (f.not_workers), false))
        and (f.attempt_from is null or s.attempt >= f.attempt_from)
        and (f.attempt_to is null or s.attempt <= f.attempt_to)
        and (f.priority_from is null or s.priority >= f.priority_from)
        and (f.priority_to is null or s.priority <= f.priority_to)
        and (f.seconds_from is null or {{seconds}} >= f.seconds_from)
        and (f.seconds_to is null or {{seconds}} <= f.seconds_to)
        and (f.payload is null or not exists (
            select from jsonb_array_elements(f.payload) as p
            where (s.payload #>> array(select jsonb_array_elements_text(p -> 'path'))) is distinct from p ->> 'value'
        ))

-- fragment: scanned
-- The latest runs below a cursor. :place picks where to look: running, failed and tagged runs have indexes of their
-- own. With `offset 0` the few are found by that index and then sorted, instead of walking through all ids; so are the
-- children of a parent that has few.
scanned as materialized (
    select * from (
        (
            select {{shown}} from foliot.all_runs
            where :place::text in ('all', 'live') and is_live and id < :before::uuid and id >= :live_from::uuid
            order by id desc limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text in ('all', 'history') and not is_live and id < :before::uuid
                and id >= :history_from::uuid and finished_at >= :finished_from::timestamptz
            order by id desc limit :scan::bigint
        )
        union all
        (
            select {{shown}} from (select * from foliot.all_runs
                where :place::text = 'running' and is_live and state = 'running' offset 0) as few
            where id < :before::uuid and id >= :live_from::uuid order by id desc limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text = 'failed' and not is_live and state = 'failed' and id < :before::uuid
                and id >= :history_from::uuid and finished_at >= :finished_from::timestamptz
            order by id desc limit :scan::bigint
        )
        union all
        (
            select {{shown}} from (
                select * from foliot.all_runs
                where :place::text = 'children' and parent_id = :parent_id::uuid
                    and (is_live or finished_at >= :finished_from::timestamptz) offset 0
            ) as few
            where id < :before::uuid and id >= :live_from::uuid order by id desc limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text = 'tagged' and is_live and is_tagged and id < :before::uuid and id >= :live_from::uuid
            order by id desc limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text = 'tagged' and not is_live and is_tagged and id < :before::uuid
                and id >= :history_from::uuid and finished_at >= :finished_from::timestamptz
            order by id desc limit :scan::bigint
        )
    ) as found
    order by id desc limit :scan::bigint
)

-- fragment: item
-- A run as lists show it, and the key of the sort, if another than the creation is wanted.
s.id, s.name, s.task, s.queue, s.state, s.reason, s.priority, s.attempt, s.worker_id, s.job_id, s.tick_at, s.rerun_of,
        s.rerun_as, s.error - 'traceback' as error, s.due_at, s.created_at, s.started_at, s.finished_at, s.parent_id,
        s.step, s.tags, :sign::float8 * case :sort::text
            when 'duration' then {{seconds}} when 'attempt' then s.attempt when 'priority' then s.priority
        end as sort_key

-- name: list_runs(
--     place, before, live_from, history_from, scan, finished_from, parent_id, reads_payload, wanted, sort, sign, limit
-- )
-- Live and finished runs, latest id first. With :sort, the first of the runs that were read, in that order.
with {{wanted}}, {{scanned}}
select n.count, n.id, w.*
from (select count(*) as count, (array_agg(id order by id))[1] as id from scanned) as n left join (
    select {{item}}
    from scanned s cross join wanted f
    where {{is_wanted}}
    order by sort_key nulls last, s.id desc limit :limit::bigint
) as w on true
order by w.sort_key nulls last, w.id desc

-- name: list_oldest_runs(
--     place, after, live_from, history_from, before, scan, finished_from, parent_id, reads_payload, wanted, sort, sign,
--     limit
-- )
-- The same, oldest id first: those above the cursor :after and below :before.
with {{wanted}}, scanned as materialized (
    select * from (
        (
            select {{shown}} from foliot.all_runs
            where :place::text in ('all', 'live') and is_live and id > :after::uuid and id >= :live_from::uuid
                and id < :before::uuid
            order by id limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text in ('all', 'history') and not is_live and id > :after::uuid and id < :before::uuid
                and id >= :history_from::uuid and finished_at >= :finished_from::timestamptz
            order by id limit :scan::bigint
        )
        union all
        (
            select {{shown}} from (select * from foliot.all_runs
                where :place::text = 'running' and is_live and state = 'running' offset 0) as few
            where id > :after::uuid and id >= :live_from::uuid and id < :before::uuid order by id limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text = 'failed' and not is_live and state = 'failed' and id > :after::uuid
                and id >= :history_from::uuid and id < :before::uuid
                and finished_at >= :finished_from::timestamptz
            order by id limit :scan::bigint
        )
        union all
        (
            select {{shown}} from (
                select * from foliot.all_runs
                where :place::text = 'children' and parent_id = :parent_id::uuid
                    and (is_live or finished_at >= :finished_from::timestamptz) offset 0
            ) as few
            where id > :after::uuid and id >= :live_from::uuid and id < :before::uuid order by id limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text = 'tagged' and is_live and is_tagged and id > :after::uuid
                and id >= :live_from::uuid and id < :before::uuid
            order by id limit :scan::bigint
        )
        union all
        (
            select {{shown}} from foliot.all_runs
            where :place::text = 'tagged' and not is_live and is_tagged and id > :after::uuid and id < :before::uuid
                and id >= :history_from::uuid and finished_at >= :finished_from::timestamptz
            order by id limit :scan::bigint
        )
    ) as found
    order by id limit :scan::bigint
)
select n.count, n.id, w.*
from (select count(*) as count, (array_agg(id order by id desc))[1] as id from scanned) as n left join (
    select {{item}}
    from scanned s cross join wanted f
    where {{is_wanted}}
    order by s.id limit :limit::bigint
) as w on true
order by w.id

-- name: list_job_runs(
--     job_id, before_at, before_id, scan, since, reads_payload, wanted, sort, sign, limit
-- )
-- The runs of one recurring job, latest tick first.
with {{wanted}}, scanned as materialized (
    select {{shown}} from foliot.all_runs
    where job_id = :job_id::uuid and tick_at <= :before_at::timestamptz
        and (tick_at, id) < (:before_at::timestamptz, :before_id::uuid) and tick_at >= :since::timestamptz
    order by tick_at desc, id desc limit :scan::bigint
)
select n.count, n.tick_at, n.id, w.*
from (
    select count(*) as count, (array_agg(tick_at order by tick_at, id))[1] as tick_at,
        (array_agg(id order by tick_at, id))[1] as id from scanned
) as n left join (
    select {{item}}
    from scanned s cross join wanted f
    where {{is_wanted}}
    order by sort_key nulls last, s.tick_at desc, s.id desc limit :limit::bigint
) as w on true
order by w.sort_key nulls last, w.tick_at desc, w.id desc

-- name: count_wanted_runs(
--     place, before, live_from, history_from, scan, finished_from, parent_id, reads_payload, wanted, job_id, from_at,
--     until_at, top
-- )
-- The number of wanted runs among those that are read, and their most frequent values (:top of each kind). The first
-- row has the number of runs that were read, and the last of their ids.
with {{wanted}}, {{scanned}}, of_job as materialized (
    select {{shown}} from foliot.all_runs
    where :place::text = 'job' and job_id = :job_id::uuid and tick_at >= :from_at::timestamptz
        and tick_at < :until_at::timestamptz
    order by tick_at desc limit :scan::bigint
), looked_at as (
    select * from scanned union all select * from of_job
), matching as materialized (
    select s.state, s.queue, s.task, s.job_id, s.name, s.worker_id, s.tags, s.error ->> 'kind' as error
    from looked_at s cross join wanted f
    where {{is_wanted}}
), valued as (
    select 'state' as facet, state as value, null::uuid as id from matching
    union all select 'queue', queue, null from matching
    union all select 'task', task, null from matching
    union all select 'job', name, job_id from matching where job_id is not null
    union all select 'worker', null, worker_id from matching where worker_id is not null
    union all select 'error', error, null from matching where error is not null
    union all select 'tag', tag, null from matching, jsonb_array_elements_text(tags) as tag where tags is not null
), counted as (
    select facet, value, id, count(*) as count,
        row_number() over (partition by facet order by count(*) desc, value) as n
    from valued where :top::bigint > 0 group by facet, value, id
)
select '' as facet, null as value, (select (array_agg(id order by id))[1] from looked_at) as id,
    (select count(*) from looked_at) as count, (select count(*) from matching) as wanted
union all
(select facet, value, id, count, null from counted where n <= :top::bigint order by facet, count desc, value)

-- name: count_runs_by_time(
--     place, from_ids, until_ids, from_times, until_times, finished_from, each, reads_payload, wanted, job_id
-- )
-- A histogram: for each bucket of ids, the first :each runs that are read in it, and the wanted ones among them by
-- state. A bucket with more runs is a sample; its last id tells how far the sample reaches. A run of a job is in the
-- bucket of its tick.
with {{wanted}}
select b.n - 1 as n, r.state, r.count, r.read, r.last_id
from unnest(:from_ids::uuid[], :until_ids::uuid[], :from_times::timestamptz[], :until_times::timestamptz[],
        :finished_from::timestamptz[])
    with ordinality as b (from_id, until_id, from_at, until_at, finished_from, n)
cross join lateral (
    select g.state, g.count, (sum(g.read) over ())::bigint as read, (max(g.last_text) over ())::uuid as last_id
    from (
        select s.state, count(*) filter (where {{is_wanted}}) as count, count(*) as read, max(s.id::text) as last_text
        from (
            select * from (
                (
                    select {{shown}} from foliot.all_runs
                    where :place::text in ('all', 'live', 'tagged') and is_live and id >= b.from_id and id < b.until_id
                        and (:place::text <> 'tagged' or is_tagged)
                    order by id limit :each::bigint
                )
                union all
                (
                    select {{shown}} from foliot.all_runs
                    where :place::text in ('all', 'history') and not is_live and id >= b.from_id and id < b.until_id
                        and finished_at >= b.finished_from
                    order by id limit :each::bigint
                )
                union all
                (
                    select {{shown}} from foliot.all_runs
                    where :place::text = 'failed' and not is_live and state = 'failed' and id >= b.from_id
                        and id < b.until_id and finished_at >= b.finished_from
                    order by id limit :each::bigint
                )
                union all
                (
                    select {{shown}} from foliot.all_runs
                    where :place::text = 'tagged' and not is_live and is_tagged and id >= b.from_id
                        and id < b.until_id and finished_at >= b.finished_from
                    order by id limit :each::bigint
                )
                union all
                (
                    select {{shown}} from foliot.all_runs
                    where :place::text = 'job' and job_id = :job_id::uuid and tick_at >= b.from_at
                        and tick_at < b.until_at and (is_live or finished_at >= b.finished_from)
                    order by tick_at limit :each::bigint
                )
            ) as found
            order by id limit :each::bigint
        ) as s cross join wanted f
        group by s.state
    ) as g
) as r
order by b.n, r.state

-- name: find_items(ids, finished_from, namespace)
-- Given runs as lists show them.
select id, name, task, queue, state, reason, priority, attempt, worker_id, job_id, tick_at, rerun_of, rerun_as,
    error - 'traceback' as error, due_at, created_at, started_at, finished_at, parent_id, step, tags
from foliot.all_runs
where id = any (:ids::uuid[]) and (is_live or finished_at >= :finished_from::timestamptz)
    and foliot.namespace_of(queue) = :namespace::text
order by id desc

-- name: list_attempts(run_id, finished_from)
-- Earlier attempts have rows of their own; the last one is stored with the run. A run that no worker held when it ended
-- has no last attempt.
select token, attempt, worker_id, started_at, finished_at, outcome, error, octet_length(output) as output_bytes,
    refused_at
from foliot.attempts where run_id = :run_id::uuid and finished_at >= :finished_from::timestamptz
union all
select token, attempt, worker_id, started_at, null, 'running', null, null, null from foliot.runs
where id = :run_id::uuid and state = 'running'
union all
select token, attempt, worker_id, started_at, finished_at,
    case state when 'failed' then coalesce(reason, 'error') else state end, error,
    octet_length(output), null
from foliot.history where id = :run_id::uuid and finished_at >= :finished_from::timestamptz and worker_id is not null
order by token
