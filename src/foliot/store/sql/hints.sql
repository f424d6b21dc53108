-- Hints to whoever listens.

-- name: notify(channel, topics)
-- One notice a topic.
select pg_notify(:channel::text, topic) from unnest(:topics::text[]) as t (topic)
