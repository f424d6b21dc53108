-- Jobs that wait for other jobs, and the links from their runs to the runs of those.

-- name: insert_job_dependencies(job_id, upstream_ids, fires, aging)
-- :fires: the job has no schedule of its own, so its dependencies fire it.
insert into foliot.job_dependencies (job_id, upstream_id, fires, aging)
select :job_id::uuid, upstream_id, :fires::boolean, :aging::bigint from unnest(:upstream_ids::uuid[]) as u (upstream_id)
on conflict do nothing

-- name: link_runs(limit, now)
-- Links runs of jobs with dependencies to the runs that they wait for.
select foliot.link_runs(:limit::bigint, coalesce(:now::timestamptz, clock_timestamp()))
