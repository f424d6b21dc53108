-- Shards, and the scheduler nodes that own them by leases. A shard's epoch grows with every new owner.

-- name: beat_scheduler(scheduler_id, name, ttl_seconds, now)
-- Registers a node or renews its lease and its shards. Returns the shards that it still owns.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), member as (
    insert into foliot.schedulers (id, name, started_at, beat_at, expires_at)
    select :scheduler_id::uuid, :name::text, at, at, at + :ttl_seconds::float8 * interval '1 second' from clock
    on conflict (id) do update set beat_at = excluded.beat_at, expires_at = excluded.expires_at
)
update foliot.shards s
set expires_at = clock.at + :ttl_seconds::float8 * interval '1 second'
from clock
where s.owner_id = :scheduler_id::uuid
returning s.id, s.epoch

-- name: take_shards(scheduler_id, ttl_seconds, now, nodes, dead)
-- Takes free shards up to this node's fair share. The higher epoch fences off the previous owner. A node that was
-- silent for half its lease is not counted: it keeps its shards, and the others share the rest. Otherwise the shards of
-- a dead node would wait for the lease of the next one that dies. With a coordinator, :nodes is the number of members,
-- and shards of :dead nodes are free at once.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), share as (
    select ceil(100.0 / greatest(1, coalesce(:nodes::bigint, count(*))))::bigint as most from foliot.schedulers, clock
    where expires_at > clock.at + :ttl_seconds::float8 / 2 * interval '1 second'
)
update foliot.shards s
set owner_id = :scheduler_id::uuid, epoch = s.epoch + 1,
    expires_at = clock.at + :ttl_seconds::float8 * interval '1 second'
from clock
where s.id = any (array(
    select id from foliot.shards, clock
    where owner_id is null or expires_at <= clock.at or owner_id = any (:dead::uuid[])
    order by random()
    limit greatest(0, (select most from share) - (select count(*) from foliot.shards
        where owner_id = :scheduler_id::uuid))
    for update of shards skip locked
))
returning s.id, s.epoch

-- name: shards_with_other_zones(scheduler_id, zones)
-- Owned shards whose cursors were last checked under other time zone rules than this node's.
select id, epoch from foliot.shards where owner_id = :scheduler_id::uuid and zones is distinct from :zones::text

-- name: mark_zones(shard, scheduler_id, epoch, zones)
-- Records that the shard's cursors were checked under these rules.
update foliot.shards set zones = :zones::text
where id = :shard::bigint and owner_id = :scheduler_id::uuid and epoch = :epoch::bigint

-- name: seconds_until_free(scheduler_id, now, dead)
-- Seconds until the first lease of another node ends, if it is not renewed. 0 if a shard is free, null if this node
-- owns all. Shards of :dead nodes are free.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
select extract(epoch from min(
    case when s.owner_id = any (:dead::uuid[]) then clock.at
        else greatest(coalesce(s.expires_at, clock.at), clock.at) end - clock.at
))::float8
from foliot.shards s, clock
where s.owner_id is distinct from :scheduler_id::uuid

-- name: give_up_surplus(scheduler_id, ttl_seconds, now, nodes)
-- Frees what this node owns beyond its fair share, after other nodes have come. Counts nodes as take_shards does.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), share as (
    select ceil(100.0 / greatest(1, coalesce(:nodes::bigint, count(*))))::bigint as most from foliot.schedulers, clock
    where expires_at > clock.at + :ttl_seconds::float8 / 2 * interval '1 second'
)
update foliot.shards set owner_id = null, expires_at = null
where owner_id = :scheduler_id::uuid and id in (
    select id from foliot.shards where owner_id = :scheduler_id::uuid order by id desc
    limit greatest(0, (select count(*) from foliot.shards where owner_id = :scheduler_id::uuid) - (select most
        from share))
)
returning id

-- name: leave(scheduler_id, channel, topic)
-- A clean shutdown: frees all shards, and notifies listeners.
with gone as (
    delete from foliot.schedulers where id = :scheduler_id::uuid
), freed as (
    update foliot.shards set owner_id = null, expires_at = null where owner_id = :scheduler_id::uuid returning id
)
select pg_notify(:channel::text, :topic::text) from (select count(*) from freed) as all_of_them

-- name: remove_dead_schedulers(now)
-- Nodes with an expired lease, so that they no longer count for the fair share.
delete from foliot.schedulers where expires_at < coalesce(:now::timestamptz, clock_timestamp()) - interval '1 minute'

-- name: list_schedulers(now)
-- The nodes whose leases have not been cleared away, with the number of shards that each owns.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
select n.id, n.name, n.started_at, n.beat_at, n.expires_at > clock.at as is_alive, (
    select count(*) from foliot.shards s where s.owner_id = n.id and s.expires_at > clock.at
) as shards
from foliot.schedulers n, clock order by n.name, n.started_at limit 1000

-- name: count_shards(now)
-- All shards, and those that a living node owns.
select count(*), count(*) filter (
    where owner_id is not null and expires_at > coalesce(:now::timestamptz, clock_timestamp())
), coalesce(:now::timestamptz, clock_timestamp()) as now
from foliot.shards
