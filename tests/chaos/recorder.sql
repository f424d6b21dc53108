-- Writes every change of runs, and of the leases of workers and shards, into tables of their own, in the transactions
-- that make them. The name of each trigger sorts before those of the schema, so that an end is written before what
-- follows from it.
create schema chaos;
create sequence chaos.seq;

create function chaos.us(at timestamptz) returns bigint language sql stable
    return coalesce((extract(epoch from at) * 1000000)::bigint, 0);

-- Each process logs in under a name of its own; behind a pooler all have the pooler's.
create function chaos.writer() returns text language sql stable
    return case when session_user::text like 'node\_%' then session_user::text else '' end;

create table chaos.changes (
    seq bigint not null default nextval('chaos.seq'), at bigint not null default chaos.us(clock_timestamp()),
    began_at bigint not null default chaos.us(transaction_timestamp()),
    transaction bigint not null default pg_current_xact_id()::text::bigint, writer text not null default chaos.writer(),
    kind text not null, run_id uuid not null, before text not null, after text not null, token bigint not null, attempt bigint not null,
    lost bigint not null, worker_id uuid, due_at bigint not null, is_cancelled boolean not null
);

create table chaos.leases (
    seq bigint not null default nextval('chaos.seq'), at bigint not null default chaos.us(clock_timestamp()), kind text not null,
    id text not null, writer text not null default chaos.writer(), owner text not null, owner_before text not null, epoch bigint not null,
    expires_at bigint not null, expired_at bigint not null
);

-- The effects of transactional jobs.
create table chaos.paid (run_id uuid not null, token bigint not null, at bigint not null default chaos.us(clock_timestamp()));

-- Records of durable functions, and the effects of their transactions.
create table chaos.records (
    seq bigint not null default nextval('chaos.seq'), at bigint not null default chaos.us(clock_timestamp()), kind text not null,
    run_id uuid not null, name text not null, token bigint not null, lost bigint not null
);

create function chaos.recorded() returns trigger language plpgsql as $$
begin
    insert into chaos.records (kind, run_id, name, token, lost)
    values (case
        when tg_op = 'INSERT' then case when new.finished_at is null then 'begin' else 'done' end
        when old.finished_at is null and new.finished_at is not null then 'done'
        else 'change'
    end, new.run_id, new.name, new.token, new.lost);
    return null;
end $$;

create function chaos.inserted() returns trigger language plpgsql as $$
begin
    insert into chaos.changes (kind, run_id, before, after, token, attempt, lost, worker_id, due_at, is_cancelled)
    select 'insert', id, '', state, token, attempt, lost, worker_id, chaos.us(due_at), cancel is not null from fresh;
    return null;
end $$;

create function chaos.updated() returns trigger language plpgsql as $$
begin
    insert into chaos.changes (kind, run_id, before, after, token, attempt, lost, worker_id, due_at, is_cancelled)
    select 'update', n.id, o.state, n.state, n.token, n.attempt, n.lost, n.worker_id, chaos.us(n.due_at), n.cancel is not null
    from fresh n join old o on o.id = n.id
    where (o.state, o.token, o.attempt, o.lost, o.worker_id, o.due_at, o.cancel is null)
        is distinct from (n.state, n.token, n.attempt, n.lost, n.worker_id, n.due_at, n.cancel is null);
    return null;
end $$;

create function chaos.deleted() returns trigger language plpgsql as $$
begin
    insert into chaos.changes (kind, run_id, before, after, token, attempt, lost, worker_id, due_at, is_cancelled)
    select 'delete', id, state, '', token, attempt, lost, worker_id, chaos.us(due_at), cancel is not null from old;
    return null;
end $$;

create function chaos.finished() returns trigger language plpgsql as $$
begin
    insert into chaos.changes (kind, run_id, before, after, token, attempt, lost, worker_id, due_at, is_cancelled)
    select 'finish', id, '', state, token, attempt, lost, worker_id, chaos.us(due_at), false from fresh;
    return null;
end $$;

create trigger a_note_insert after insert on foliot.runs referencing new table as fresh for each statement execute function chaos.inserted();
create trigger a_note_update after update on foliot.runs
    referencing old table as old new table as fresh for each statement execute function chaos.updated();
create trigger a_note_delete after delete on foliot.runs referencing old table as old for each statement execute function chaos.deleted();
create trigger a_note_finish after insert on foliot.history referencing new table as fresh for each statement execute function chaos.finished();

create function chaos.worker_changed() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into chaos.leases (kind, id, owner, owner_before, epoch, expires_at, expired_at)
        values ('worker', old.id, '', old.id, 0, chaos.us(clock_timestamp()), chaos.us(old.expires_at));
    else
        insert into chaos.leases (kind, id, owner, owner_before, epoch, expires_at, expired_at)
        values ('worker', new.id, new.id, new.id, 0, chaos.us(new.expires_at), 0);
    end if;
    return null;
end $$;

create function chaos.shard_changed() returns trigger language plpgsql as $$
begin
    insert into chaos.leases (kind, id, owner, owner_before, epoch, expires_at, expired_at)
    values ('shard', new.id, coalesce(new.owner_id::text, ''), coalesce(old.owner_id::text, ''), new.epoch, chaos.us(new.expires_at),
        chaos.us(old.expires_at));
    return null;
end $$;

create trigger a_note after insert or update or delete on foliot.workers for each row execute function chaos.worker_changed();
create trigger a_note_insert after insert on foliot.checkpoints for each row execute function chaos.recorded();
create trigger a_note_update after update on foliot.checkpoints for each row
    when ((old.name, old.kind, old.token, old.finished_at, old.result::text) is distinct from
        (new.name, new.kind, new.token, new.finished_at, new.result::text)) execute function chaos.recorded();
create trigger a_note after update on foliot.shards for each row
    when (old.owner_id is distinct from new.owner_id or old.epoch <> new.epoch) execute function chaos.shard_changed();
