-- Rules of alerts, silences and heartbeats. There are few of each.

-- name: put_alert_rule(name, namespace, rule, heartbeat, by, most, now)
-- Creates or changes a rule. Nothing is written if the namespace has :most others. An equal rule makes no new version.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), beating as (
    insert into foliot.heartbeats (name, at, by, number)
    select :heartbeat::text, at, '', 0 from clock where :heartbeat::text is not null
    on conflict (name) do nothing
)
insert into foliot.alert_rules as r (name, created_at, updated_at, updated_by, heartbeat, rule)
select :name::text, at, at, :by::text, :heartbeat::text, :rule::jsonb from clock
where (
    select count(*) from foliot.alert_rules
    where foliot.namespace_of(name) = :namespace::text and name <> :name::text
) < :most::bigint
on conflict (name) do update set rule = excluded.rule, heartbeat = excluded.heartbeat,
    version = r.version + (r.rule <> excluded.rule)::int,
    updated_at = case when r.rule = excluded.rule then r.updated_at else excluded.updated_at end,
    updated_by = case when r.rule = excluded.rule then r.updated_by else excluded.updated_by end
returning name, version, created_at, updated_at, updated_by, rule

-- name: get_alert_rule(name)
-- By name.
select name, version, created_at, updated_at, updated_by, rule from foliot.alert_rules where name = :name::text

-- name: list_alert_rules(namespace, limit)
-- The rules of a namespace, or of all of them, by name.
select name, version, created_at, updated_at, updated_by, rule from foliot.alert_rules
where :namespace::text is null or foliot.namespace_of(name) = :namespace::text
order by name limit :limit::bigint

-- name: delete_alert_rule(name, by, now)
-- Resolves its alerts too, without a message.
with gone as (
    delete from foliot.alert_rules where name = :name::text returning name
), resolved as (
    update foliot.alerts a
    set state = 'resolved', resolved_at = coalesce(:now::timestamptz, clock_timestamp()), resolved_by = :by::text,
        version = version + 1
    from gone where a.rule = gone.name and a.state <> 'resolved'
)
select name from gone

-- name: add_silence(id, namespace, rule, subject, reason, by, until, most, now)
-- A repetition changes nothing. Not more than :most in a namespace.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), added as (
    insert into foliot.alert_silences (id, namespace, rule, subject, reason, created_at, created_by, until_at)
    select :id::uuid, :namespace::text, :rule::text, :subject::text, :reason::text, at, :by::text, :until::timestamptz
    from clock where (
        select count(*) from foliot.alert_silences where namespace = :namespace::text and until_at > clock.at
    ) < :most::bigint
    on conflict (id) do nothing
    returning id
)
select exists (select from added) or exists (select from foliot.alert_silences where id = :id::uuid)

-- name: list_silences(namespace, limit, now)
-- The silences that have not ended, of a namespace or of all of them.
select id, namespace, rule, subject, reason, created_at, created_by, until_at from foliot.alert_silences
where until_at > coalesce(:now::timestamptz, clock_timestamp())
    and (:namespace::text is null or namespace = :namespace::text)
order by until_at, id limit :limit::bigint

-- name: delete_silence(id, namespace)
-- Ends a silence.
delete from foliot.alert_silences where id = :id::uuid and namespace = :namespace::text

-- name: beat_heartbeat(name, by, now)
-- Notes a heartbeat that a rule declares.
update foliot.heartbeats set at = coalesce(:now::timestamptz, clock_timestamp()), by = :by::text, number = number + 1
where name = :name::text and exists (select from foliot.alert_rules where heartbeat = :name::text)

-- name: list_heartbeats(namespace, limit)
-- Heartbeats that a rule declares, of a namespace or of all of them.
select name, at, by, number from foliot.heartbeats h
where (:namespace::text is null or foliot.namespace_of(name) = :namespace::text)
    and exists (select from foliot.alert_rules r where r.heartbeat = h.name)
order by name limit :limit::bigint
