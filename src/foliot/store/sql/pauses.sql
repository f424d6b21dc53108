-- Pauses of a queue, of a task, or of everything, and the paused jobs. jobs.sql pauses and resumes those.

-- name: put_pause(kind, name, until, reason, actor, now)
-- A second pause replaces the reason and the end of the first.
insert into foliot.pauses (kind, name, paused_at, until_at, reason, actor)
values (:kind::text, :name::text, coalesce(:now::timestamptz, clock_timestamp()), :until::timestamptz, :reason::text,
    :actor::text)
on conflict (kind, name) do update set until_at = excluded.until_at, reason = excluded.reason, actor = excluded.actor

-- name: delete_pause(kind, name)
-- Ends a pause early.
delete from foliot.pauses where kind = :kind::text and name = :name::text returning true

-- name: list_pauses(now)
-- The pauses that are in force.
select kind, name, paused_at, until_at, reason, actor from foliot.pauses
where until_at is null or until_at > coalesce(:now::timestamptz, clock_timestamp()) order by kind, name

-- name: list_job_pauses(after_name, namespace, scan)
-- The paused jobs of a namespace, by name. Looks at :scan paused jobs after a name, and reports how many it saw.
with scanned as materialized (
    select name, paused_at, paused_until, paused_reason, paused_by from foliot.jobs
    where paused_at is not null and name > :after_name::text
        and (:namespace::text = 'default' or name < :namespace::text || '0')
    order by name limit :scan::bigint
)
select s.count, j.*
from (select count(*) as count from scanned) as s left join scanned j on foliot.namespace_of(j.name) = :namespace::text
order by j.name

-- name: end_pauses(now)
-- Deletes pauses that have expired, and returns their names, so that the held runs are claimed at once.
--
-- Lock: the row of each pause. The condition is on that row, so PostgreSQL checks it again after waiting for a lock: a
-- pause that was prolonged meanwhile stays.
delete from foliot.pauses where until_at <= coalesce(:now::timestamptz, clock_timestamp()) returning kind, name
