-- Replays of dead letters that begin with one run, the canary.

-- name: start_replay(
--     id, namespace, actor, old_ids, new_ids, payload, apart_seconds, keeps_checkpoints, is_repeated, finished_from,
--     now
-- )
-- Stores all that will be replayed. Returns nothing while another replay of the canary's group is under way.
insert into foliot.replays (
    id, namespace, fingerprint, actor, created_at, old_ids, new_ids, total, payload, apart_seconds, keeps_checkpoints,
    is_repeated
)
select :id::uuid, :namespace::text, coalesce(h.fingerprint, ''), :actor::text,
    coalesce(:now::timestamptz, clock_timestamp()), :old_ids::uuid[], :new_ids::uuid[], cardinality(:old_ids::uuid[]),
    :payload::jsonb, :apart_seconds::float8, :keeps_checkpoints::boolean, :is_repeated::boolean
from foliot.history h
where h.id = (:old_ids::uuid[])[1] and h.finished_at >= :finished_from::timestamptz
on conflict do nothing

-- name: find_replay(id, namespace)
-- One replay, with what has become of its runs so far.
with found as materialized (
    select * from foliot.replays where id = :id::uuid and namespace = :namespace::text
), outcomes as (
    select h.state, count(*) as count from found f
    join foliot.history h on h.id = any (f.new_ids[1:(f.released)]) and h.finished_at >= f.created_at - interval '1 day'
    group by h.state
)
select f.id, f.fingerprint, f.actor, f.created_at, f.state, f.reason, f.released_at, f.finished_at, f.total, f.started,
    f.old_ids[1] as canary_of, f.new_ids[1] as canary_id, f.payload is not null as has_payload,
    f.apart_seconds, (select jsonb_object_agg(state, count) from outcomes)
from found f

-- name: list_replays(namespace, fingerprint, limit)
-- The latest replays of a namespace, or of one group.
select id, fingerprint, actor, created_at, state, reason, released_at, finished_at, total, started,
    old_ids[1] as canary_of, new_ids[1] as canary_id, payload is not null as has_payload,
    apart_seconds, null::jsonb
from foliot.replays
where namespace = :namespace::text and (:fingerprint::text is null or fingerprint = :fingerprint::text)
order by id desc limit :limit::bigint

-- name: decide_replays(now)
-- Lets the other dead letters follow where the canary has succeeded, and stops where it has ended otherwise. A canary
-- that is neither live nor in the history was pruned with its day.
--
-- Lock: the row of each replay. PostgreSQL checks its state again after waiting for a lock, so a replay that somebody
-- has stopped stays stopped.
update foliot.replays p
set state = case when c.ended = 'succeeded' then 'releasing' else 'stopped' end,
    reason = case when c.ended = 'succeeded' then null else 'its first run ' || coalesce(c.ended, 'is gone') end,
    released_at = case when c.ended = 'succeeded' then clock.at end,
    finished_at = case when c.ended = 'succeeded' then null else clock.at end
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock, (
    select r.id, (
        select h.state from foliot.history h
        where h.id = r.new_ids[1] and h.finished_at >= r.created_at - interval '1 day' limit 1
    ) as ended, exists (select from foliot.runs l where l.id = r.new_ids[1]) as is_live
    from foliot.replays r where r.state = 'waiting'
) as c
where p.id = c.id and p.state = 'waiting' and (c.ended is not null or not c.is_live)
returning p.id

-- name: take_replay(batch, now)
-- The next dead letters of a replay that has been released, and after how many seconds the first is due.
--
-- Lock: the row of the replay, until they are replayed and counted. Another node takes another replay meanwhile.
select r.id, r.namespace, r.old_ids[(r.released + 1):(r.released + :batch::bigint)],
    r.new_ids[(r.released + 1):(r.released + :batch::bigint)],
    r.payload, r.apart_seconds, r.keeps_checkpoints, r.is_repeated,
    greatest(0, extract(epoch from r.released_at - coalesce(:now::timestamptz, clock_timestamp()))
        + (r.released - 1) * r.apart_seconds)::float8
from foliot.replays r where r.state = 'releasing' order by r.id limit 1 for update skip locked

-- name: note_released(id, released, started, now)
-- In the transaction that replays them. Without any, all have been replayed.
update foliot.replays
set released = released + :released::bigint, started = started + :started::bigint,
    state = case when released + :released::bigint >= total then 'done' else state end,
    finished_at = case when released + :released::bigint >= total then coalesce(:now::timestamptz, clock_timestamp())
        end
where id = :id::uuid

-- name: stop_replay(id, namespace, reason, now)
-- What has been replayed stays; what has not stays a dead letter.
update foliot.replays
set state = 'stopped', reason = :reason::text, finished_at = coalesce(:now::timestamptz, clock_timestamp())
where id = :id::uuid and namespace = :namespace::text and state in ('waiting', 'releasing')

-- name: forget_replays(limit, before)
-- Deletes a batch of replays that ended before an instant.
delete from foliot.replays
where id = any (array(select id from foliot.replays where finished_at < :before::timestamptz limit :limit::bigint))
