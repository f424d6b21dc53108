-- Runs that wait for the earlier run of their job. fire_ticks in ticks.sql decides which ones do.

-- name: release_held(scheduler_id, shards, epochs, now)
-- held -> ready, or -> held by a limit, for the oldest held run of each job that has no other live run. Only the owner
-- of the shard may do this, or two nodes would start two runs at once. A deleted job has no shard, so its runs belong
-- to the owner of shard 0.
with mine as (
    select s.id from foliot.shards s
    join unnest(:shards::bigint[], :epochs::bigint[]) as e (id, epoch) on s.id = e.id and s.epoch = e.epoch
    where s.owner_id = :scheduler_id::uuid and s.expires_at > coalesce(:now::timestamptz, clock_timestamp())
    for share of s
), next as (
    select distinct on (r.job_id) r.id
    from foliot.runs r left join foliot.jobs j on j.id = r.job_id join mine on mine.id = coalesce(j.shard, 0)
    where r.state = 'held' and r.held_by = 'overlap' and r.cancel is null
        and not exists (select from foliot.runs other
            where other.job_id = r.job_id and (other.state <> 'held' or other.held_by <> 'overlap'))
    order by r.job_id, r.tick_at
)
update foliot.runs
set state = case when foliot.has_limits(options) then 'held' else 'ready' end,
    held_by = case when foliot.has_limits(options) then 'limit' end
where id = any (array(select id from next)) and held_by = 'overlap' and cancel is null
returning queue
