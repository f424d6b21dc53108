-- Hints to whoever listens.

-- name: notify
-- One notice a topic.
select pg_notify($1::text, topic) from unnest($2::text[]) as t (topic)
