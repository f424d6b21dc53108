-- Names that a few characters are enough to find.

-- name: search_names(pattern, namespace, limit, scan, now)
-- Tasks, queues, workers and calendars of the namespace whose stored names match the pattern, :limit of each kind. The
-- tables have a row for each name that somebody chose; no more than :scan rows of each are read.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), tasks as materialized (
    select name, queue from foliot.tasks where foliot.namespace_of(name) = :namespace::text
    order by name limit :scan::bigint
), living as materialized (
    select w.id, w.name, w.queues, w.draining_at from foliot.workers w, clock
    where w.expires_at > clock.at order by w.name limit :scan::bigint
), queues as (
    select queue as name from tasks
    union
    (select name from foliot.queues where foliot.namespace_of(name) = :namespace::text limit :scan::bigint)
    union
    select q.key from living cross join jsonb_each(living.queues) as q
    where foliot.namespace_of(q.key) = :namespace::text
)
(select 'task' as kind, name as id, name, queue as hint from tasks where name ilike :pattern::text
order by name limit :limit::bigint)
union all
(select 'queue', name, name, null from queues where name ilike :pattern::text order by name limit :limit::bigint)
union all
(
    select 'worker', id::text, name, case when draining_at is null then null else 'draining' end from living
    where (foliot.qualified(:namespace::text, name) ilike :pattern::text
            or foliot.qualified(:namespace::text, id::text) ilike :pattern::text)
        and exists (
            select from jsonb_object_keys(queues) as q (key) where foliot.namespace_of(q.key) = :namespace::text
        )
    order by name limit :limit::bigint
)
union all
(
    select 'calendar', name, name, null from (
        select name from foliot.calendars where foliot.namespace_of(name) = :namespace::text
        order by name limit :scan::bigint
    ) as c
    where name ilike :pattern::text order by name limit :limit::bigint
)

-- name: search_jobs(pattern, namespace, first, limit, scan)
-- Recurring jobs whose stored names match the pattern. Reads :scan names from :first on, along the index of names.
select id, name, task from (
    select id, name, task, queue from foliot.jobs where name >= :first::text order by name limit :scan::bigint
) as read
where name ilike :pattern::text and foliot.namespace_of(queue) = :namespace::text
order by name limit :limit::bigint
