-- Output and progress of attempts while they run.

-- name: write_logs
-- Appends what attempts have written, and notes how far they say they are. Sent again, it stores a part twice; readers
-- take it once.
with written as (
    insert into foliot.logs (run_id, token, part, written_at, chunk)
    select run_id, token, part, coalesce($6::timestamptz, clock_timestamp()), chunk
    from unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::bytea[]) as c (run_id, token, part, chunk)
)
update foliot.runs r
set progress = p.progress
from unnest($7::uuid[], $8::bigint[], $9::jsonb[]) as p (id, token, progress)
where r.id = p.id and r.token = p.token and r.worker_id = $1::uuid and r.state = 'running'

-- name: read_logs
-- From a position on. No part is longer than $6, so that none that reaches beyond the position begins earlier.
select distinct on (part) part, chunk
from foliot.logs
where run_id = $1::uuid and token = $2::bigint and written_at >= $3::timestamptz and part > $4::bigint - $6::bigint
    and part + octet_length(chunk) > $4::bigint
order by part limit $5::bigint

-- name: read_parts
-- All that attempts have shown, in order. Each part once.
select distinct on (l.run_id, l.token, l.part) l.run_id, l.token, l.part, l.chunk
from unnest($1::uuid[], $2::bigint[]) as e (run_id, token)
join foliot.logs l on l.run_id = e.run_id and l.token = e.token and l.written_at >= $3::timestamptz
order by l.run_id, l.token, l.part

-- name: keep_lost_outputs
-- What a lost attempt had shown is its output. Nobody else writes one for it.
with given as (
    select run_id, token, output from unnest($1::uuid[], $2::bigint[], $3::bytea[]) as g (run_id, token, output)
), kept as (
    update foliot.attempts a set output = g.output from given g
    where a.run_id = g.run_id and a.token = g.token and a.finished_at >= $4::timestamptz and a.outcome = 'lost' and a.output is null
)
update foliot.history h set output = g.output from given g
where h.id = g.run_id and h.token = g.token and h.finished_at >= $4::timestamptz and h.reason = 'lost' and h.output is null

-- name: get_output
-- What is kept of an attempt that has ended. No row: it has not ended, or not in a way that left anything.
select output from foliot.history where id = $1::uuid and token = $2::bigint and finished_at >= $3::timestamptz and output is not null
union all
select output from foliot.attempts where run_id = $1::uuid and token = $2::bigint and finished_at >= $3::timestamptz and output is not null

-- name: follow_run
-- Where a run is, for those who follow its output. Small, because it is asked for twice a second.
select state, null::text as reason, token, attempt, progress from foliot.runs where id = $1::uuid
union all
select state, reason, token, attempt, null from foliot.history where id = $1::uuid and finished_at >= $2::timestamptz

-- name: delete_logs
-- Parts of attempts whose output is kept elsewhere by now.
delete from foliot.logs l
using unnest($1::uuid[], $2::bigint[]) as e (run_id, token)
where l.run_id = e.run_id and l.token = e.token and l.written_at >= $3::timestamptz and (
    exists (
        select from foliot.history h
        where h.id = e.run_id and h.token = e.token and h.finished_at >= $3::timestamptz and h.output is not null
    ) or exists (
        select from foliot.attempts a
        where a.run_id = e.run_id and a.token = e.token and a.finished_at >= $3::timestamptz and a.output is not null
    )
)
