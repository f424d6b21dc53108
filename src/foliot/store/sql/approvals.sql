-- Runs that wait for a signal, as people see them who decide.

-- name: list_approvals(after, scan, limit, namespace, payload_max)
-- Held by a signal, oldest first. Looks at :scan of them behind its cursor, and reports how far it got. Large payloads
-- stay in the database.
with scanned as materialized (
    select id, queue from foliot.runs where held_by = 'signal' and id > :after::uuid order by id limit :scan::bigint
)
select s.count, s.last_id, w.*
from (select count(*) as count, (array_agg(id order by id desc))[1] as last_id from scanned) as s left join (
    select r.id, r.name, r.task, r.queue, r.created_at,
        case
            when r.awaits is null then r.due_at - foliot.signal_wait(r.options)
            else (
                select min(started_at) from foliot.checkpoints
                where run_id = r.id and kind = 'signal' and finished_at is null
            )
        end as since,
        case
            when r.awaits ? 'until' or r.awaits is null and r.options #>> '{signal,timeout_seconds}' is not null
                then r.due_at
        end as until,
        r.awaits -> 'signals' as signals,
        case when octet_length(r.payload::text) <= :payload_max::bigint then r.payload end as payload,
        octet_length(r.payload::text) as payload_bytes,
        r.options -> 'metadata' as metadata, r.options -> 'tags' as tags, r.parent_id, r.step, r.job_id,
        coalesce(p.name, h.name) as workflow
    from scanned c join foliot.runs r on r.id = c.id left join foliot.parents f on f.id = r.parent_id
    left join foliot.runs p on p.id = f.run_id
    left join lateral (
        select name from foliot.history where p.id is null and id = f.run_id and finished_at >= f.created_at
    ) as h on true
    where foliot.namespace_of(c.queue) = :namespace::text
    order by r.id limit :limit::bigint
) as w on true
order by w.id
