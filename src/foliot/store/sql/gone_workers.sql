-- Workers that have left or died lately.

-- name: list_gone_workers(worker_id, limit)
-- The latest first, along their index.
select id, name, queues, labels, started_at, gone_at, is_dead, lost, lost_runs from foliot.gone_workers
where (:worker_id::uuid is null or id = :worker_id::uuid) and queues is not null
order by gone_at desc, id desc limit :limit::bigint

-- name: forget_gone_workers(limit, now)
-- Deletes a batch of those that have been gone for a day.
delete from foliot.gone_workers
where id = any (array(
    select id from foliot.gone_workers
    where gone_at < (select coalesce(:now::timestamptz, clock_timestamp()) - interval '1 day') order by gone_at
    limit :limit::bigint for update skip locked
))
