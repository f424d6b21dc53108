-- Alerts: opened, changed and resolved by the process that evaluates, and by people.

-- name: list_unresolved(limit)
-- Every alert that is pending or open, for the evaluation.
select id, namespace, rule, subject, state, severity, version, since, opened_at, resolved_at, resolved_by, last_at,
    number, title, summary, subjects, log_tail, page, messages, told_at, acknowledged_at, acknowledged_by, note
from foliot.alerts where state <> 'resolved' order by id limit :limit::bigint

-- name: store_alerts(owner, alerts, deliveries, waiting_max, now)
-- Stores what an evaluation decided, if its process still holds the lease. A new alert must be the only unresolved one
-- of its rule and subject, and a changed one must have the version that was read. One without a state was pending for
-- a condition that no longer holds. A message is stored with the change that it tells of; if :waiting_max messages wait
-- for its channel, it is dropped.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), mine as materialized (
    select e.name from foliot.exports e, clock
    where e.name = 'alerts' and e.owner = :owner::uuid and e.expires_at > clock.at for update of e
), given as materialized (
    select g.* from jsonb_to_recordset(:alerts::jsonb) as g (
        id uuid, namespace text, rule text, subject text, state text, severity text, version bigint, since timestamptz,
        opened_at timestamptz, resolved_at timestamptz, last_at timestamptz, number bigint, title text, summary text,
        subjects jsonb, log_tail text, page text, messages bigint, told_at timestamptz
    ) where exists (select from mine)
), opened as (
    insert into foliot.alerts (
        id, namespace, rule, subject, state, severity, since, opened_at, resolved_at, last_at, number, title, summary,
        subjects, log_tail, page, messages, told_at
    )
    select g.id, g.namespace, g.rule, g.subject, g.state, g.severity, g.since, g.opened_at, g.resolved_at, g.last_at,
        g.number, g.title, g.summary, g.subjects, g.log_tail, g.page, g.messages, g.told_at
    from given g join foliot.alert_rules r on r.name = g.rule
    where g.version = 0
    on conflict do nothing
    returning id
), changed as (
    update foliot.alerts a
    set state = g.state, severity = g.severity, version = a.version + 1, since = g.since, opened_at = g.opened_at,
        resolved_at = g.resolved_at, last_at = g.last_at, number = g.number, title = g.title, summary = g.summary,
        subjects = g.subjects, log_tail = g.log_tail, page = g.page, messages = g.messages, told_at = g.told_at
    from given g
    where a.id = g.id and g.state is not null and g.version > 0 and a.version = g.version and a.state <> 'resolved'
    returning a.id
), dropped as (
    delete from foliot.alerts a using given g
    where a.id = g.id and g.state is null and a.version = g.version and a.state = 'pending'
), made as (
    insert into foliot.alert_deliveries (id, alert_id, number, channel, state, created_at, due_at, finished_at, message)
    select d.id, d.alert_id, d.number, d.channel, f.state, clock.at, clock.at,
        case when f.state = 'dropped' then clock.at end, d.message
    from clock cross join jsonb_to_recordset(:deliveries::jsonb) as d (
        id uuid, alert_id uuid, number bigint, channel text, message jsonb
    ) cross join lateral (
        select case when count(*) < :waiting_max::bigint then 'waiting' else 'dropped' end as state from (
            select from foliot.alert_deliveries w where w.channel = d.channel and w.state = 'waiting'
            limit :waiting_max::bigint
        ) as waiting
    ) as f
    where d.alert_id in (select id from opened union all select id from changed)
    on conflict (id) do nothing
    returning state
)
select (select count(*) from opened), (select count(*) from changed), count(*) filter (where state = 'waiting'),
    count(*) filter (where state = 'dropped')
from made

-- name: list_alerts(namespace, states, rule, after, limit)
-- Alerts of a namespace, latest first.
select id, namespace, rule, subject, state, severity, version, since, opened_at, resolved_at, resolved_by, last_at,
    number, title, summary, subjects, log_tail, page, messages, told_at, acknowledged_at, acknowledged_by, note
from foliot.alerts
where namespace = :namespace::text and state = any (:states::text[]) and (:rule::text is null or rule = :rule::text)
    and (:after::uuid is null or id < :after::uuid)
order by id desc limit :limit::bigint

-- name: get_alert(id, namespace)
-- One alert of a namespace.
select id, namespace, rule, subject, state, severity, version, since, opened_at, resolved_at, resolved_by, last_at,
    number, title, summary, subjects, log_tail, page, messages, told_at, acknowledged_at, acknowledged_by, note
from foliot.alerts where id = :id::uuid and namespace = :namespace::text

-- name: acknowledge_alert(id, namespace, by, note, now)
-- The first acknowledgement stays. Returns no row unless the alert is open. Pagers that have had a message about the
-- alert get one more, so that they stop paging others.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), before as materialized (
    select id, acknowledged_at is null as is_first from foliot.alerts
    where id = :id::uuid and namespace = :namespace::text and state = 'open' for update
), pagers as materialized (
    select distinct on (d.channel) d.channel, d.message
    from before b join foliot.alert_deliveries d on d.alert_id = b.id
    join foliot.alert_channels c on c.name = d.channel and c.channel ->> 'kind' = 'pagerduty'
    where b.is_first order by d.channel, d.number desc
), taken as (
    update foliot.alerts a
    set acknowledged_at = coalesce(a.acknowledged_at, clock.at),
        acknowledged_by = coalesce(a.acknowledged_by, :by::text), note = coalesce(:note::text, a.note),
        version = a.version + 1, messages = a.messages + exists (select from pagers)::int
    from before b, clock where a.id = b.id
    returning a.id, a.messages
), told as (
    insert into foliot.alert_deliveries (id, alert_id, number, channel, state, created_at, due_at, message)
    select md5(format('%s/%s/%s', t.id, p.channel, t.messages))::uuid, t.id, t.messages, p.channel, 'waiting', clock.at,
        clock.at, p.message || '{"event": "acknowledged"}'
    from taken t cross join pagers p cross join clock
    on conflict (id) do nothing
)
select id from taken

-- name: resolve_alert(id, namespace, by)
-- A person resolves an alert. The next evaluation carries it out and makes the messages, as for every resolved alert.
update foliot.alerts
set resolved_by = coalesce(resolved_by, :by::text), version = version + 1
where id = :id::uuid and namespace = :namespace::text and state = 'open'
returning id

-- name: forget_alerts(before, limit)
-- Deletes alerts that were resolved long ago, with their deliveries, and silences that have ended.
with old as (
    select id from foliot.alerts
    where state = 'resolved' and resolved_at < :before::timestamptz
        and not exists (
            select from foliot.alert_deliveries d where d.alert_id = alerts.id and d.state = 'waiting'
        )
    order by resolved_at limit :limit::bigint for update skip locked
), unheard as (
    delete from foliot.alert_silences where until_at < :before::timestamptz
), gone as (
    delete from foliot.alerts where id in (select id from old) returning id
)
select count(*) from gone
