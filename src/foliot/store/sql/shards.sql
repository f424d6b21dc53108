-- Who owns which shard, by leases under epochs that only grow.

-- name: beat_scheduler(scheduler_id, name, ttl_seconds, now)
-- Registers or renews a node, and renews the shards it owns; the ids and epochs that it still owns.
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

-- name: take_shards(scheduler_id, ttl_seconds, now)
-- Takes free shards up to this node's fair share. Whoever had them before is fenced off by the grown epoch. A node that
-- has been silent for half its lease is late by half a turn: it keeps what it has, and what it would have a right to
-- beyond that is for the others. Else what one that died leaves behind would wait for the lease of the next one that
-- died.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), share as (
    select ceil(100.0 / greatest(1, count(*)))::bigint as most from foliot.schedulers, clock
    where expires_at > clock.at + :ttl_seconds::float8 / 2 * interval '1 second'
)
update foliot.shards s
set owner_id = :scheduler_id::uuid, epoch = s.epoch + 1,
    expires_at = clock.at + :ttl_seconds::float8 * interval '1 second'
from clock
where s.id = any (array(
    select id from foliot.shards, clock
    where owner_id is null or expires_at <= clock.at
    order by random()
    limit greatest(0, (select most from share) - (select count(*) from foliot.shards
        where owner_id = :scheduler_id::uuid))
    for update of shards skip locked
))
returning s.id, s.epoch

-- name: shards_with_other_zones(scheduler_id, zones)
-- Owned shards whose cursors were set, or last looked through, under other rules of time zones than this node's.
select id, epoch from foliot.shards where owner_id = :scheduler_id::uuid and zones is distinct from :zones::text

-- name: mark_zones(shard, scheduler_id, epoch, zones)
-- The shard's cursors have been looked through under these rules.
update foliot.shards set zones = :zones::text
where id = :shard::bigint and owner_id = :scheduler_id::uuid and epoch = :epoch::bigint

-- name: seconds_until_free(scheduler_id, now)
-- Until the first lease of another node ends, should it not be renewed; 0 when a shard is free. Null when all are this
-- node's.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
)
select extract(epoch from min(greatest(coalesce(s.expires_at, clock.at), clock.at) - clock.at))::float8
from foliot.shards s, clock
where s.owner_id is distinct from :scheduler_id::uuid

-- name: give_up_surplus(scheduler_id, ttl_seconds, now)
-- What this node owns beyond its fair share since another one came; taken back by whoever has room. Counts the nodes as
-- take_shards does.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), share as (
    select ceil(100.0 / greatest(1, count(*)))::bigint as most from foliot.schedulers, clock
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
-- A clean stop: everything is free at once, and whoever listens hears of it.
with gone as (
    delete from foliot.schedulers where id = :scheduler_id::uuid
), freed as (
    update foliot.shards set owner_id = null, expires_at = null where owner_id = :scheduler_id::uuid returning id
)
select pg_notify(:channel::text, :topic::text) from (select count(*) from freed) as all_of_them

-- name: remove_dead_schedulers(now)
-- Nodes whose lease is over, so that they no longer count towards anybody's fair share.
delete from foliot.schedulers where expires_at < coalesce(:now::timestamptz, clock_timestamp()) - interval '1 minute'
