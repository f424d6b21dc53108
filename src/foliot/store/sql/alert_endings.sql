-- How runs ended, summed up for the rules of alerts. Read only if a rule needs it.

-- name: sum_up_endings(after_at, after_id, until, limit)
-- The next :limit endings after a place, in groups. Each row also has the place of the last ending.
with page as materialized (
    select id, finished_at, name, task, queue, state, job_id, options -> 'tags' as tags
    from foliot.history
    where finished_at >= :after_at::timestamptz and (finished_at, id) > (:after_at::timestamptz, :after_id::uuid)
        and finished_at < :until::timestamptz
    order by finished_at, id limit :limit::bigint
), reached as (
    select finished_at, id from page order by finished_at desc, id desc limit 1
)
select case when p.job_id is not null then p.name end as job, p.task, p.queue, p.tags::text,
    count(*) filter (where p.state = 'succeeded') as succeeded, count(*) filter (where p.state = 'failed') as failed,
    max(p.finished_at) filter (where p.state = 'succeeded') as succeeded_at,
    max(p.finished_at) filter (where p.state = 'failed') as failed_at,
    (array_agg(p.id order by p.finished_at desc) filter (where p.state = 'failed'))[1:5] as failed_ids,
    count(*) as number, r.finished_at, r.id
from page p cross join reached r
group by 1, 2, 3, 4, r.finished_at, r.id

-- name: advance_alerts(owner, old_at, old_id, at, id, counts)
-- Moves the place, and adds what lies before it to the counts. The old place is part of the condition, so that nothing
-- is counted twice.
with moved as (
    update foliot.exports set at = :at::timestamptz, id = :id::uuid
    where name = 'alerts' and owner = :owner::uuid and at = :old_at::timestamptz and id = :old_id::uuid
    returning name
), counted as (
    insert into foliot.alert_counts as c (rule, subject, at, succeeded, failed)
    select g.rule, g.subject, g.at, g.succeeded, g.failed
    from jsonb_to_recordset(:counts::jsonb) as g (
        rule text, subject text, at timestamptz, succeeded bigint, failed bigint
    ) join foliot.alert_rules r on r.name = g.rule
    where exists (select from moved)
    on conflict (rule, subject, at) do update
    set succeeded = c.succeeded + excluded.succeeded, failed = c.failed + excluded.failed
)
select exists (select from moved)

-- name: read_counts(rules, starts, limit)
-- The sums of each rule and subject since a time of the rule.
select c.rule, c.subject, sum(c.succeeded)::bigint, sum(c.failed)::bigint
from unnest(:rules::text[], :starts::timestamptz[]) as w (rule, since)
join foliot.alert_counts c on c.rule = w.rule and c.at >= w.since
group by 1, 2 order by 1, sum(c.failed) desc, 2 limit :limit::bigint

-- name: forget_counts(rules, starts)
-- Deletes the counts before a time of each rule.
delete from foliot.alert_counts c using unnest(:rules::text[], :starts::timestamptz[]) as w (rule, since)
where c.rule = w.rule and c.at < w.since

-- name: describe_failures(run_ids, finished_from, tail_bytes)
-- Why runs failed, and the end of their output.
select id, attempt, reason, error ->> 'kind', left(error ->> 'message', 300),
    substr(output, greatest(1, length(output) - :tail_bytes::int + 1))
from foliot.history where id = any (:run_ids::uuid[]) and finished_at >= :finished_from::timestamptz

-- name: recovered_jobs(names, failed)
-- Of these jobs, those with a run that succeeded after a time.
select f.name from unnest(:names::text[], :failed::timestamptz[]) as f (name, at)
join foliot.jobs j on j.name = f.name
where exists (
    select from foliot.history h where h.job_id = j.id and h.finished_at > f.at and h.state = 'succeeded'
)
