-- Hints to whoever listens.

-- name: notify
-- One notice a queue.
select pg_notify($1::text, queue) from unnest($2::text[]) as q (queue)
