-- Hints to listeners.

-- name: notify(channel, topics)
-- One notification for each topic.
select pg_notify(:channel::text, topic) from unnest(:topics::text[]) as t (topic)
