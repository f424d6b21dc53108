-- Checks whether PostgreSQL can be used.

-- name: can_write
-- False on a standby and on a node that was set read-only.
select not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off'
