-- Fewer steps for what every run goes through.

-- Stored generated columns are dear in an UPDATE that leaves them alone: PostgreSQL reads their expressions anew for each row, a third of
-- what a claim cost. Indexes on the same expressions do the same work, and only for the few rows that have such a key.
alter table foliot.runs drop column concurrency_key, drop column rate_key, drop column fairness_key;

create index runs_of_key on foliot.runs ((options #>> '{concurrency,key}'))
    where (options #>> '{concurrency,key}') is not null and state in ('ready', 'running');
create index runs_waiting_for_key on foliot.runs ((options #>> '{concurrency,key}'), rank) where held_by = 'limit';
create index runs_waiting_for_rate on foliot.runs ((options #>> '{rate,key}'), rank) where held_by = 'limit';
create index runs_in_turn on foliot.runs (queue, (options ->> 'fairness_key'), rank)
    where (options ->> 'fairness_key') is not null and state = 'ready';

-- Those of a long line that say what is to happen at the limit: there are few, and the rest need not be looked at for them.
create index runs_at_limit on foliot.runs ((options #>> '{concurrency,key}'), rank)
    where held_by = 'limit' and (options #>> '{concurrency,at_limit}') in ('drop_new', 'cancel_old');
