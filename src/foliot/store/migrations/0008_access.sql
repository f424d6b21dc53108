-- Tokens, and the record of who did what. Names that belong to a namespace hold it: see model/namespace.py.

create function foliot.namespace_of(qualified text) returns text language sql immutable parallel safe
return case when strpos(qualified, '/') = 0 then 'default' else split_part(qualified, '/', 1) end;

create function foliot.bare(qualified text) returns text language sql immutable parallel safe
return regexp_replace(qualified, '^.*/', '');

create function foliot.qualified(namespace text, name text) returns text language sql immutable parallel safe
return case when namespace = 'default' then name else namespace || '/' || name end;

-- `hash` is the SHA-256 of the whole token; `id` is the part of it that is no secret. `namespace` may be *, for all of them.
create table foliot.tokens (
    id text primary key,
    name text not null,
    hash bytea not null,
    role text not null,
    namespace text not null,
    created_at timestamptz not null,
    created_by text not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    used_at timestamptz,
    constraint tokens_role_is_known check (role in ('viewer', 'submitter', 'operator', 'admin', 'worker'))
);

-- A name can be used again once its token was revoked.
create unique index tokens_name_is_unique on foliot.tokens (namespace, name) where revoked_at is null;

-- Every change that was asked for and every refusal, one partition a day.
create table foliot.audit (
    id uuid not null,
    at timestamptz not null,
    actor text not null,
    token_id text,
    role text,
    namespace text not null,
    address text,
    request_id text not null,
    method text not null,
    path text not null,
    action text not null,
    target text,
    status bigint not null,
    code text
) partition by range (at);

create index audit_at on foliot.audit (at, id);

-- Nobody rewrites it; days that are over are dropped whole.
create function foliot.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'foliot.audit is append-only' using errcode = 'insufficient_privilege';
end $$;

create trigger audit_is_append_only before update or delete on foliot.audit for each row execute function foliot.refuse_change();
