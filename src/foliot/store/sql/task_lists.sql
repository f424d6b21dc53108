-- The known tasks and the live workers that offer them.

-- name: page_of_tasks(namespace, after, limit, now)
-- By name, a page at a time.
with clock as materialized (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), page as materialized (
    select t.name, t.queue, t.tags, t.guarantee, t.announcement, t.seen_at from foliot.tasks t
    where foliot.namespace_of(t.name) = :namespace::text and (:after::text is null or t.name > :after::text)
    order by t.name limit :limit::bigint
)
select p.*, (
    select count(*) from foliot.workers w, clock where w.expires_at > clock.at and p.name = any (w.tasks)
) as workers
from page p order by p.name

-- name: find_task(name, now)
-- One of them, by its qualified name.
select t.name, t.queue, t.tags, t.guarantee, t.announcement, t.seen_at, (
    select count(*) from foliot.workers w
    where w.expires_at > coalesce(:now::timestamptz, clock_timestamp()) and t.name = any (w.tasks)
) as workers
from foliot.tasks t where t.name = :name::text

-- name: workers_of_task(name, most, now)
-- The live workers that offer a task, with the announcement of their code.
select w.id, w.name, w.announcement from foliot.workers w
where w.expires_at > coalesce(:now::timestamptz, clock_timestamp()) and :name::text = any (w.tasks)
order by w.name, w.id limit :most::bigint

-- name: task_statistics(namespace, first_id, finished_from, scan)
-- What became of the latest :scan runs that have ended, for each task of the namespace.
with scanned as materialized (
    select task, queue, state, started_at, finished_at from foliot.history
    where id >= :first_id::uuid and finished_at >= :finished_from::timestamptz
    order by id desc limit :scan::bigint
)
select task, count(*) as ended, count(*) filter (where state = 'failed') as failed,
    percentile_cont(0.5) within group (order by extract(epoch from finished_at - started_at)::float8) as p50,
    percentile_cont(0.95) within group (order by extract(epoch from finished_at - started_at)::float8) as p95
from scanned
where state in ('succeeded', 'failed') and foliot.namespace_of(queue) = :namespace::text
group by task
