-- Builds the result of a parent from how its children ended.
--
-- The result of a map of up to 1000 items also holds their results, as long as these are small.
create or replace function foliot.parent_result(p foliot.parents) returns json language sql stable
return (
    select case
        when r.results is null
            then json_build_object('succeeded', p.succeeded, 'failed', p.failed, 'cancelled', p.cancelled, 'skipped',
                p.skipped)
        else json_build_object(
            'succeeded', p.succeeded, 'failed', p.failed, 'cancelled', p.cancelled, 'skipped', p.skipped, 'results',
            r.results
        )
    end
    from (
        select case
            when coalesce(sum(octet_length(h.result::text)), 0) <= 1000000
                then json_agg(coalesce(h.result, 'null'::json) order by h.step::bigint)
        end as results
        from foliot.history h
        where p.kind = 'map' and p.total <= 1000 and p.failed + p.cancelled = 0 and h.parent_id = p.id
            and h.state = 'succeeded'
            and h.finished_at >= p.created_at - interval '1 day'
    ) as r
);
