-- The channels of alerts.

-- name: put_channel(name, channel, secrets, now, version, created_at, only_new)
-- Creates the channel or changes it. If a version is given (:version, :created_at), only that one is changed; with
-- :only_new, nothing is.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
insert into foliot.alert_channels as c (name, created_at, updated_at, channel, secrets)
select :name::text, at, at, :channel::jsonb, :secrets::jsonb from clock
where :version::bigint is null or exists (select from foliot.alert_channels where name = :name::text)
on conflict (name) do update
set version = c.version + 1, updated_at = excluded.updated_at, channel = excluded.channel, secrets = excluded.secrets
where not :only_new::boolean and (:version::bigint is null
    or (c.version = :version::bigint and c.created_at = :created_at::timestamptz))
returning name, version, created_at, updated_at, channel, secrets

-- name: seal_channel_again(name, version, created_at, secrets)
-- Stores the same secrets, encrypted with another key. It makes no new version.
update foliot.alert_channels set secrets = :secrets::jsonb
where name = :name::text and version = :version::bigint and created_at = :created_at::timestamptz
returning true

-- name: get_channel(name)
-- By name.
select name, version, created_at, updated_at, channel, secrets from foliot.alert_channels where name = :name::text

-- name: list_channels(limit, namespace)
-- All channels of a namespace, by name. There are few.
select name, version, created_at, updated_at, channel, secrets from foliot.alert_channels
where foliot.namespace_of(name) = :namespace::text order by name limit :limit::bigint

-- name: delete_channel(name, namespace, bare_name)
-- Unless a rule names it. Messages that still wait for it fail.
delete from foliot.alert_channels where name = :name::text and not exists (
    select from foliot.alert_rules r
    where foliot.namespace_of(r.name) = :namespace::text and r.rule -> 'channels' ? :bare_name::text
)
returning true
