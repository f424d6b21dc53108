-- Long lines of runs that nobody may start stand apart from those that may be claimed; workers tell what will not end.

-- `held_by` is 'pause', 'circuit' or 'no_worker' for a run that stood in such a line. Short ones stay ready, and are stepped over.
create index runs_parked on foliot.runs (queue, task, rank) where held_by in ('pause', 'circuit', 'no_worker');

-- Functions that go on after their attempts have ended, each in a slot of its own.
alter table foliot.workers add column left_running bigint not null default 0;

-- A run that is replaced gets the state that its new definition calls for. The rest of the function stays what it is.
do $migration$
declare
    was constant text := $text$state = case when r.state in ('waiting', 'held') then r.state when due > at then 'scheduled' else 'ready' end$text$;
    becomes constant text := $text$state = case
                    when r.state = 'waiting' then r.state when due > at then 'scheduled'
                    when given_options ?| '{concurrency,rate}' then 'held' else 'ready'
                end,
                held_by = case when r.state <> 'waiting' and due <= at and given_options ?| '{concurrency,rate}' then 'limit' end$text$;
    definition constant text := pg_get_functiondef('foliot.submit(jsonb)'::regprocedure);
begin
    if position(was in definition) = 0 then
        raise exception 'foliot.submit is not the function that this migration knows';
    end if;
    execute replace(definition, was, becomes);
end
$migration$;
