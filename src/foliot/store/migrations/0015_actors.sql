-- works beside: 12
-- Two namespaces may each have a token of the same name. With the namespace and the id of the token, an actor is told from every other one.

alter table foliot.audit add column actor_namespace text;
alter table foliot.tokens add column created_by_id text;
