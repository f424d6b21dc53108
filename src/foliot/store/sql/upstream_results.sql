-- The states and results of the runs before a run.

-- name: read_upstream(run_ids, max_bytes)
-- For each live run, the state and result of each upstream run by step or name, and the signal that released it. No
-- step ends before its workflow is created, so earlier days are not searched. If the results are too large together
-- (:max_bytes), they are left out.
select r.id, r.signal, h.key, h.state, case when h.bytes <= :max_bytes::bigint then h.result end, h.bytes
from foliot.runs r left join foliot.parents p on p.id = r.parent_id
left join lateral (
    select coalesce(h.step, h.name, h.id::text) as key, h.state, h.result,
        coalesce(sum(octet_length(h.result::text)) over (), 0) as bytes
    from foliot.history h
    where h.id = any (r.upstream) and h.finished_at >= coalesce(p.created_at - interval '1 day', '-infinity')
) as h on true
where r.id = any (:run_ids::uuid[])
