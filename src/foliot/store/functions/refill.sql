-- Creates the next runs of a map, up to its capacity.
--
-- The first call unpacks the list of items into `map_items`; later calls take rows from there, so that the cost does
-- not grow with the length of the list.
create or replace function foliot.refill(map_id uuid, at timestamptz) returns void language plpgsql as $$
declare
    map record;
    number bigint;
    chunk bigint;
    -- The list has not been unpacked into map_items.
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
        from jsonb_array_elements(
            case when is_packed then (select items from foliot.parents where id = map.id) end
        ) with ordinality as e (value, n)
        where n > map.next_index * chunk
        union all
        select i, to_jsonb((map.template ->> 'start')::bigint + i * (map.template ->> 'step')::bigint)
        from generate_series(
            map.next_index * chunk, least((map.next_index + number) * chunk, (map.template ->> 'count')::bigint) - 1
        ) as i
        where not map.has_list
    ), chunked as materialized (
        select index / chunk as place,
            case when chunk = 1 then (array_agg(value))[1] else jsonb_agg(value order by index) end as value
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
            task text, queue text, name text, priority bigint, payload jsonb, options jsonb, item_name text,
            rank_offset bigint
        )
    )
    insert into foliot.runs (
        id, created_at, due_at, rank, priority, state, held_by, queue, task, name, payload, options, parent_id, step
    )
    select foliot.new_id(at), at, at,
        (extract(epoch from at) * 1000000)::bigint - t.rank_offset + n.place - map.next_index, t.priority,
        case when foliot.has_limits(t.options) then 'held' else 'ready' end,
        case when foliot.has_limits(t.options) then 'limit' end,
        t.queue, t.task, t.name, coalesce(t.payload, '{}') || jsonb_build_object(t.item_name, n.value), t.options,
        map.id, n.place::text
    from next n, template t;
    update foliot.parents set next_index = next_index + number, unfinished = unfinished + number where id = map.id;
    perform foliot.note_count('submitted', number);
end
$$;
