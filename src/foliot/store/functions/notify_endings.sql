-- Creates a run of the task `http` for each notification that an ended run requested.
--
-- The trigger runs in the transaction that ends the run, so the notification exists if and only if the end does. It
-- must never fail, or no run could end: a malformed notification makes its own delivery fail instead. Runs without
-- `notify` cost one test of a column in memory. The delivery itself requests no notification.
create or replace function foliot.notify_endings() returns trigger language plpgsql as $$
declare
    number bigint;
begin
    insert into foliot.runs (id, created_at, due_at, rank, state, queue, task, name, payload, options)
    select foliot.notification_id(g.id, n.place, g.finished_at), g.finished_at, g.finished_at,
        (extract(epoch from g.finished_at) * 1000000)::bigint, 'ready',
        coalesce(foliot.qualified(foliot.namespace_of(g.queue), n.notice ->> 'queue'), g.queue),
        foliot.qualified(foliot.namespace_of(g.queue), 'http'),
        left('notify: ' || coalesce(g.shown_name, g.step, foliot.bare(g.task)), 200),
        jsonb_build_object(
            'url', n.notice -> 'url', 'method', 'POST', 'headers', coalesce(n.notice -> 'headers', '{}'),
            'body', jsonb_build_object(
                'id', g.id, 'name', g.shown_name, 'task', foliot.bare(g.task), 'queue', foliot.bare(g.queue), 'status',
                g.status, 'state', g.state, 'reason', g.reason,
                'error', case when g.error is not null then
                    jsonb_build_object('kind', g.error ->> 'kind', 'message', left(g.error ->> 'message', 2000))
                end,
                'attempt', g.attempt, 'created_at', foliot.utc_text(g.created_at), 'scheduled_at',
                foliot.utc_text(g.due_at),
                'started_at', foliot.utc_text(g.started_at), 'finished_at', foliot.utc_text(g.finished_at),
                'job_id', g.job_id, 'tick_at', foliot.utc_text(g.tick_at), 'parent_id', g.parent_id, 'step', g.step,
                'rerun_of', g.rerun_of, 'tags', coalesce(g.options -> 'tags', '[]'),
                'links', jsonb_build_object('run', '/v1/runs/' || g.id, 'logs', '/v1/runs/' || g.id || '/logs')
            )
        ),
        jsonb_strip_nulls(jsonb_build_object(
            'retries', 10, 'notifies', g.id,
            -- The delivery belongs to the trace of the run, below its span: see model/tracing.py.
            'traceparent', left(g.options ->> 'traceparent', 36) || right(replace(g.id::text, '-', ''), 16)
                || right(g.options ->> 'traceparent', 3)
        ))
    from (
        select *, case when job_id is null then name else foliot.bare(name) end as shown_name,
            case state when 'succeeded' then 'completed' else state end as status,
            case jsonb_typeof(options -> 'notify') when 'array' then options -> 'notify' else '[]' end as notices
        from gone where options ? 'notify'
    ) as g
    cross join lateral jsonb_array_elements(g.notices) with ordinality as n (notice, place)
    where n.notice -> 'on' ? g.status or n.notice -> 'on' ? g.reason
    on conflict (id) do nothing;
    get diagnostics number = row_count;
    perform foliot.note_count('submitted', number);
    return null;
end
$$;

create or replace trigger notify after insert on foliot.history
referencing new table as gone for each statement execute function foliot.notify_endings();
