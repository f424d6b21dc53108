-- Output and progress of attempts while they run.

-- name: write_logs(worker_id, run_ids, tokens, parts, chunks, now, noted_run_ids, noted_tokens, notes)
-- Appends output, and stores progress. A repetition stores a part twice; readers skip the second one.
with written as (
    insert into foliot.logs (run_id, token, part, written_at, chunk)
    select run_id, token, part, coalesce(:now::timestamptz, clock_timestamp()), chunk
    from unnest(:run_ids::uuid[], :tokens::bigint[], :parts::bigint[], :chunks::bytea[]) as c (run_id, token, part,
        chunk)
)
update foliot.runs r
set progress = p.progress
from unnest(:noted_run_ids::uuid[], :noted_tokens::bigint[], :notes::jsonb[]) as p (id, token, progress)
where r.id = p.id and r.token = p.token and r.worker_id = :worker_id::uuid and r.state = 'running'

-- name: read_logs(run_id, token, written_from, position, limit, part_max_bytes)
-- From a position on. No part is longer than :part_max_bytes, so no part that reaches past the position begins more
-- than that before it.
select distinct on (part) part, chunk
from foliot.logs
where run_id = :run_id::uuid and token = :token::bigint and written_at >= :written_from::timestamptz
    and part > :position::bigint - :part_max_bytes::bigint
    and part + octet_length(chunk) > :position::bigint
order by part limit :limit::bigint

-- name: read_parts(run_ids, tokens, written_from)
-- All output of these attempts, in order, each part once.
select distinct on (l.run_id, l.token, l.part) l.run_id, l.token, l.part, l.chunk
from unnest(:run_ids::uuid[], :tokens::bigint[]) as e (run_id, token)
join foliot.logs l on l.run_id = e.run_id and l.token = e.token and l.written_at >= :written_from::timestamptz
order by l.run_id, l.token, l.part

-- name: keep_lost_outputs(run_ids, tokens, outputs, finished_from)
-- Stores the streamed output of lost attempts as their output. No other statement writes it.
with given as (
    select run_id, token, output from unnest(:run_ids::uuid[], :tokens::bigint[], :outputs::bytea[]) as g (run_id,
        token, output)
), kept as (
    update foliot.attempts a set output = g.output from given g
    where a.run_id = g.run_id and a.token = g.token and a.finished_at >= :finished_from::timestamptz
        and a.outcome = 'lost' and a.output is null
)
update foliot.history h set output = g.output from given g
where h.id = g.run_id and h.token = g.token and h.finished_at >= :finished_from::timestamptz and h.reason = 'lost'
    and h.output is null

-- name: get_output(run_id, token, finished_from)
-- The stored output of an ended attempt. No row if it has not ended, or left no output.
select output from foliot.history
where id = :run_id::uuid and token = :token::bigint and finished_at >= :finished_from::timestamptz
    and output is not null
union all
select output from foliot.attempts
where run_id = :run_id::uuid and token = :token::bigint and finished_at >= :finished_from::timestamptz
    and output is not null

-- name: follow_run(run_id, finished_from)
-- The state of a run, for followers of its output. Small, because each follower reads it twice a second.
select state, null::text as reason, token, attempt, progress from foliot.runs where id = :run_id::uuid
union all
select state, reason, token, attempt, null from foliot.history
where id = :run_id::uuid and finished_at >= :finished_from::timestamptz

-- name: delete_logs(run_ids, tokens, written_from)
-- Deletes the parts of attempts whose output is stored elsewhere.
delete from foliot.logs l
using unnest(:run_ids::uuid[], :tokens::bigint[]) as e (run_id, token)
where l.run_id = e.run_id and l.token = e.token and l.written_at >= :written_from::timestamptz and (
    exists (
        select from foliot.history h
        where h.id = e.run_id and h.token = e.token and h.finished_at >= :written_from::timestamptz
            and h.output is not null
    ) or exists (
        select from foliot.attempts a
        where a.run_id = e.run_id and a.token = e.token and a.finished_at >= :written_from::timestamptz
            and a.output is not null
    )
)
