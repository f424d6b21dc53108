-- The tasks of each app, as its workers announce them.

-- name: put_announcement(hash, tasks, now)
-- The time keeps an announcement that a worker is about to refer to.
insert into foliot.announcements (hash, tasks, announced_at)
values (:hash::text, :tasks::json, coalesce(:now::timestamptz, clock_timestamp()))
on conflict (hash) do update set announced_at = excluded.announced_at

-- name: forget_announcements(now)
-- Those of code that no worker runs any more, and that was not the last to announce a task.
delete from foliot.announcements a
where a.announced_at < coalesce(:now::timestamptz, clock_timestamp()) - interval '1 hour'
    and not exists (select from foliot.tasks t where t.announcement = a.hash)
    and not exists (select from foliot.workers w where w.announcement = a.hash)

-- name: list_announcements(known, now)
-- Those of live workers and the latest of each task, with their contents unless the caller knows them.
with mentioned as (
    select announcement as hash, true as is_live from foliot.workers
    where expires_at > coalesce(:now::timestamptz, clock_timestamp())
    union
    select announcement, false from foliot.tasks
), hashes as (
    select hash, bool_or(is_live) as is_live from mentioned where hash is not null group by hash
)
select h.hash, h.is_live, a.tasks::text
from hashes h left join foliot.announcements a on a.hash = h.hash and a.hash <> all (:known::text[])
