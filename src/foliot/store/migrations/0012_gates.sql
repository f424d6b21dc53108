-- The cost of a limit, of a map and of a list of jobs no longer depends on how much waits, or on how long the list is.

-- The rank with which the gatekeeper last looked at a run that waits for a limit. A run that has just begun to wait, or that was replaced,
-- retried or ranked anew, has another one, so nobody has to remember to reset it.
alter table foliot.runs add column seen_rank bigint;
create index runs_arrived on foliot.runs (rank) where held_by = 'limit' and seen_rank is distinct from rank;

-- Keys that the gatekeeper must look at, and from when on: a run of the key has ended or made room, or a start leaves the period of its
-- rate. Rows are only added, so transactions that free places of the same key never wait for each other. Only the gatekeeper deletes them.
create table foliot.turns (
    kind text not null constraint turns_kind_is_known check (kind in ('concurrency', 'rate')),
    key text not null,
    look_at timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index turns_due on foliot.turns (look_at);
create index turns_of_rate on foliot.turns (key, look_at) where kind = 'rate';

-- Old starts are deleted in batches, oldest first.
create index rate_starts_old on foliot.rate_starts (started_at);

create or replace function foliot.settle() returns trigger language plpgsql as $$
declare
    at timestamptz;
    ended foliot.ending[];
    upstreams uuid[];
    run_ids uuid[];
    has_limits boolean;
begin
    select max(finished_at),
        array_agg(row(
            id, state, parent_id,
            case when state = 'skipped' then error ->> 'upstream' when state <> 'succeeded' then coalesce(step, name, id::text) end,
            has_dependents
        )::foliot.ending) filter (where parent_id is not null or has_dependents),
        array_agg(job_id) filter (where job_id is not null and state = 'succeeded'),
        array_agg(id) filter (where job_id is not null and state = 'succeeded'),
        bool_or(options ?| '{concurrency,rate}')
    into at, ended, upstreams, run_ids, has_limits
    from gone where parent_id is not null or has_dependents or job_id is not null or options ?| '{concurrency,rate}';
    if has_limits then
        -- Whether or not anybody waits for the key: somebody who begins to wait at this very moment can't be seen from here.
        insert into foliot.turns (kind, key, look_at)
        select distinct 'concurrency', options #>> '{concurrency,key}', '-infinity'::timestamptz
        from gone where options #>> '{concurrency,key}' is not null
        union all
        -- A run that started has used its place in the rate. One that did not start may have stood in front of others.
        select distinct 'rate', options #>> '{rate,key}', '-infinity'::timestamptz
        from gone where options #>> '{rate,key}' is not null and started_at is null;
    end if;
    if ended is not null and current_setting('foliot.is_settling', true) is distinct from 'yes' then
        perform foliot.settle_endings(ended, at);
    end if;
    if upstreams is not null and exists (select from foliot.job_dependencies where upstream_id = any (upstreams) and fires) then
        perform foliot.fire_dependents(upstreams, run_ids, at);
    end if;
    return null;
end
$$;

-- Items of a map that have not become runs yet, one row for each future run. The list itself is unpacked once, when the first items are made.
create table foliot.map_items (
    map_id uuid not null,
    place bigint not null,
    value jsonb not null,
    primary key (map_id, place)
);

create or replace function foliot.refill(map_id uuid, at timestamptz) returns void language plpgsql as $$
declare
    map record;
    number bigint;
    chunk bigint;
    -- A map that began before its items had rows of their own unpacks its list once more.
    is_packed boolean;
begin
    -- Without the list: reading it costs as much as it is long.
    select id, capacity, unfinished, total, next_index, stop, template, items is not null as has_list into map
    from foliot.parents where id = map_id for update;
    number := least(map.capacity - map.unfinished, map.total - map.next_index);
    if number <= 0 or map.stop is not null then
        return;
    end if;
    chunk := (map.template ->> 'chunk_size')::bigint;
    is_packed := map.has_list and not exists (
        select from foliot.map_items i where i.map_id = map.id and i.place = map.next_index
    );
    with numbered as (
        select n - 1 as index, value
        from jsonb_array_elements(case when is_packed then (select items from foliot.parents where id = map.id) end) with ordinality as e (value, n)
        where n > map.next_index * chunk
        union all
        select i, to_jsonb((map.template ->> 'start')::bigint + i * (map.template ->> 'step')::bigint)
        from generate_series(
            map.next_index * chunk, least((map.next_index + number) * chunk, (map.template ->> 'count')::bigint) - 1
        ) as i
        where not map.has_list
    ), chunked as materialized (
        select index / chunk as place, case when chunk = 1 then (array_agg(value))[1] else jsonb_agg(value order by index) end as value
        from numbered group by index / chunk
    ), kept as (
        insert into foliot.map_items (map_id, place, value)
        select map.id, c.place, c.value from chunked c where c.place >= map.next_index + number
    ), taken as (
        delete from foliot.map_items i
        where i.map_id = map.id and i.place >= map.next_index and i.place < map.next_index + number and not is_packed
        returning i.place, i.value
    ), next as (
        select c.place, c.value from chunked c where c.place < map.next_index + number
        union all
        select t.place, t.value from taken t
    ), template as (
        select * from jsonb_to_record(map.template) as t (
            task text, queue text, name text, priority bigint, payload jsonb, options jsonb, item_name text, rank_offset bigint
        )
    )
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, parent_id, step
    )
    select foliot.new_id(at), at, at, (extract(epoch from at) * 1000000)::bigint - t.rank_offset + n.place - map.next_index, t.priority,
        case when t.options ?| '{concurrency,rate}' then 'held' else 'ready' end,
        case when t.options ?| '{concurrency,rate}' then 'limit' end,
        t.queue, t.task, t.name, coalesce(t.payload, '{}') || jsonb_build_object(t.item_name, n.value), t.options, map.id, n.place::text
    from next n, template t;
    update foliot.parents set next_index = next_index + number, unfinished = unfinished + number where id = map.id;
end
$$;

-- Whether a run waits for another is one look at the index, however many others wait for the same.
create index dependencies_of_run on foliot.dependencies (upstream_id, run_id);
drop index foliot.dependencies_upstream;

-- By bytes, whatever the language of the database, so that the jobs of a namespace stand together in the index of names: nothing else comes
-- between `team/` and `team0`. An index of its own would cost every tick.
alter table foliot.jobs alter column name type text collate "C";

-- When the probe of an open circuit was chosen: one that does not start soon makes way for another.
alter table foliot.circuits add column probe_at timestamptz;
