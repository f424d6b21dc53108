-- Sources: rules that turn messages of other systems into jobs.

-- name: put_source(name, definition, most, now, version, created_at)
-- Creates a source, unless the namespace has :most others, or changes it. An equal definition makes no new version.
-- With :version and :created_at, only that version is changed.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
insert into foliot.sources as s (name, definition, created_at, updated_at)
select :name::text, :definition::jsonb, at, at from clock
where (
    select count(*) from foliot.sources
    where foliot.namespace_of(name) = foliot.namespace_of(:name::text) and name <> :name::text
) < :most::bigint
    and (:version::bigint is null or exists (select from foliot.sources where name = :name::text))
on conflict (name) do update
set version = s.version + (s.definition <> excluded.definition)::int, definition = excluded.definition,
    updated_at = case when s.definition = excluded.definition then s.updated_at else excluded.updated_at end,
    failing_since = null, error = null
where :version::bigint is null or (s.version = :version::bigint and s.created_at = :created_at::timestamptz)
returning name, version, definition, created_at, updated_at, received_at, failing_since, error

-- name: get_source(name)
-- By name.
select name, version, definition, created_at, updated_at, received_at, failing_since, error
from foliot.sources where name = :name::text

-- name: list_sources(namespace, limit)
-- The sources of a namespace by name. There are few.
select name, version, definition, created_at, updated_at, received_at, failing_since, error
from foliot.sources where foliot.namespace_of(name) = :namespace::text order by name limit :limit::bigint

-- name: delete_source(name)
-- Its dead messages go with it. Deleting it again changes nothing.
delete from foliot.sources where name = :name::text returning true

-- name: hold_sources(owner, lease_seconds, limit, now)
-- One scheduler node at a time receives the messages of a source. Takes sources that nobody holds, renews the leases of
-- this node, and returns what it holds. A webhook is not held: its messages come to servers.
update foliot.sources s
set owner = :owner::uuid,
    expires_at = coalesce(:now::timestamptz, clock_timestamp()) + :lease_seconds::float8 * interval '1 second'
where name = any (array(
    select name from foliot.sources
    where (owner = :owner::uuid or expires_at is null
            or expires_at < (select coalesce(:now::timestamptz, clock_timestamp())))
        and definition ->> 'kind' <> 'webhook' and not coalesce((definition -> 'paused')::boolean, false)
    order by name limit :limit::bigint
    for update skip locked
))
returning name, version, definition, created_at, updated_at, received_at, failing_since, error

-- name: release_sources(owner)
-- The next node need not wait for the leases.
update foliot.sources set expires_at = '-infinity' where owner = :owner::uuid

-- name: note_source(name, is_received, error, now)
-- That messages have arrived, or since when the source has failed.
update foliot.sources
set received_at = case when :is_received::boolean then coalesce(:now::timestamptz, clock_timestamp())
        else received_at end,
    failing_since = case when :error::text is null then null
        else coalesce(failing_since, :now::timestamptz, clock_timestamp()) end,
    error = :error::text
where name = :name::text

-- name: list_places(source)
-- Where to continue in each partition of its topic.
select partition, next from foliot.source_places where source = :source::text

-- name: store_places(source, partitions, nexts)
-- In the transaction of the jobs. A node that is late may set a place back: its messages come again and change nothing.
insert into foliot.source_places (source, partition, next)
select s.name, p.partition, p.next
from foliot.sources s, unnest(:partitions::text[], :nexts::bigint[]) as p (partition, next)
where s.name = :source::text
on conflict (source, partition) do update set next = excluded.next

-- name: bury_messages(source, ids, message_ids, reasons, bodies, headers, now)
-- A message that is buried already stays as it is. A source that was deleted meanwhile has no dead messages.
insert into foliot.dead_messages (id, source, at, message_id, reason, body, headers)
select d.id, s.name, coalesce(:now::timestamptz, clock_timestamp()), d.message_id, d.reason, d.body, d.headers
from foliot.sources s, unnest(:ids::uuid[], :message_ids::text[], :reasons::text[], :bodies::bytea[],
    :headers::jsonb[]) as d (id, message_id, reason, body, headers)
where s.name = :source::text
on conflict (source, message_id) do nothing
returning id

-- name: drop_old_messages(source, most)
-- Deletes the oldest dead messages of a source beyond :most of them.
delete from foliot.dead_messages
where source = :source::text and id <= (
    select id from foliot.dead_messages where source = :source::text order by id desc offset :most::bigint limit 1
)

-- name: list_dead_messages(source, before, limit)
-- The newest first.
select id, at, message_id, reason, body, headers from foliot.dead_messages
where source = :source::text and (:before::uuid is null or id < :before::uuid) order by id desc limit :limit::bigint

-- name: get_dead_message(source, id)
-- Of this source.
select id, at, message_id, reason, body, headers from foliot.dead_messages
where source = :source::text and id = :id::uuid

-- name: delete_dead_message(source, id)
-- Deleting it again changes nothing.
delete from foliot.dead_messages where source = :source::text and id = :id::uuid returning true
