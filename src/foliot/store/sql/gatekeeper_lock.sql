-- The lock under which one gatekeeper at a time admits runs and sends probes.

-- name: take_gates(lock)
-- Lock: an advisory lock, released with the transaction, after its commit is visible. Later statements of the same
-- transaction take their snapshots after this one, so they see everything that the previous gatekeeper decided.
select pg_try_advisory_xact_lock(:lock::bigint)
