-- Parts of statements that several files use.

-- fragment: run_columns
-- The columns that a run keeps when it moves to history.
id, created_at, due_at, started_at, token, attempt, lost, priority, queue, task, name, payload, options, job_id,
    tick_at, rerun_of, parent_id, step, upstream, has_dependents
