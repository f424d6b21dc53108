-- Redrive: runs the failed part of a finished workflow again.

-- name: reopen_parent(parent_id, run_id, unfinished, succeeded, skipped, old_run_id)
-- Reopens a finished workflow under a new run. Steps that are not run again keep their outcome.
update foliot.parents
set root_id = id, run_id = :run_id::uuid, finished_at = null, stop = null, blame = null,
    unfinished = :unfinished::bigint,
    succeeded = :succeeded::bigint, failed = 0, cancelled = 0, skipped = :skipped::bigint
where id = :parent_id::uuid and run_id = :old_run_id::uuid and finished_at is not null
returning true

-- name: skip_undue_steps(parent_id, now)
-- waiting -> skipped, for repeated steps whose upstream steps have all ended, in a way that their rule does not accept.
with closed as (
    delete from foliot.runs
    where parent_id = :parent_id::uuid and state = 'waiting'
        and foliot.rule_verdict(rule, unmet, met_succeeded, met_failed, met_skipped) = 'skip'
    returning *
)
insert into foliot.history (
    id, created_at, due_at, finished_at, token, attempt, lost, priority, state, queue, task, name, reason, payload,
    options, error, rerun_of,
    parent_id, step, upstream, has_dependents
)
select id, created_at, due_at, coalesce(:now::timestamptz, clock_timestamp()), token, attempt, lost, priority,
    'skipped', queue, task, name,
    case when met_skipped > 0 then 'dependency_skipped' else 'rule_unmet'
        end, payload, options, foliot.skip_error(rule, null, met_skipped),
    rerun_of, parent_id, step, upstream, has_dependents
from closed

-- name: point_to_rerun(old_ids, new_ids, since)
-- Links each old run to the run that replaces it.
update foliot.history h set rerun_as = r.new_id
from unnest(:old_ids::uuid[], :new_ids::uuid[]) as r (old_id, new_id)
where h.id = r.old_id and h.finished_at >= :since::timestamptz
