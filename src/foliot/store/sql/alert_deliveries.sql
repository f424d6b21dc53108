-- Messages on their way to channels. A message is claimed for a time, and is sent again if it is not reported by then.

-- name: claim_deliveries(limit, claim_seconds, per_minute, now)
-- The first message of each channel, unless the channel has had :per_minute messages in the last minute. Messages
-- about one alert stay in order. A claim moves the due time ahead, so that nobody else sends the message meanwhile.
with clock as (
    select coalesce(:now::timestamptz, clock_timestamp()) as at
), due as materialized (
    select d.id, d.channel, d.alert_id, d.number, d.due_at
    from foliot.alert_deliveries d, clock
    where d.state = 'waiting' and d.due_at <= clock.at
    order by d.due_at limit 1000
), first as (
    select distinct on (d.channel) d.id, d.channel from due d, clock
    where not exists (
        select from foliot.alert_deliveries e
        where e.alert_id = d.alert_id and e.channel = d.channel and e.number < d.number and e.state = 'waiting'
    )
    order by d.channel, d.due_at, d.id
), chosen as (
    select w.id from foliot.alert_deliveries w
    where w.id in (
        select f.id from first f, clock where (
            select count(*) from foliot.alert_deliveries s
            where s.channel = f.channel and s.state = 'sent' and s.finished_at > clock.at - interval '1 minute'
                and s.created_at > clock.at - interval '2 days'
        ) < :per_minute::bigint
        limit :limit::bigint
    ) and w.state = 'waiting' and w.due_at <= (select at from clock)
    for update skip locked
)
update foliot.alert_deliveries d
set due_at = clock.at + :claim_seconds::float8 * interval '1 second', attempt = attempt + 1
from clock, chosen where d.id = chosen.id
returning d.id, d.channel, d.attempt, d.created_at, d.message

-- name: finish_delivery(id, attempt, state, error, now)
-- Notes that a message was sent, or never will be.
update foliot.alert_deliveries
set state = :state::text, error = :error::text, finished_at = coalesce(:now::timestamptz, clock_timestamp())
where id = :id::uuid and state = 'waiting' and attempt = :attempt::bigint

-- name: postpone_delivery(id, attempt, error, delay_seconds, give_up_seconds, now)
-- Tries again later, or gives up if the message is too old.
update foliot.alert_deliveries d
set error = :error::text,
    due_at = clock.at + :delay_seconds::float8 * interval '1 second',
    state = case when c.is_over then 'failed' else 'waiting' end,
    finished_at = case when c.is_over then clock.at end
from (select coalesce(:now::timestamptz, clock_timestamp()) as at) as clock cross join lateral (
    select created_at < clock.at - :give_up_seconds::float8 * interval '1 second' as is_over
    from foliot.alert_deliveries where id = :id::uuid
) as c
where d.id = :id::uuid and d.state = 'waiting' and d.attempt = :attempt::bigint

-- name: list_deliveries(alert_id, limit)
-- The messages about an alert.
select id, channel, message ->> 'event' as event, state, created_at, attempt, finished_at, error
from foliot.alert_deliveries where alert_id = :alert_id::uuid order by number desc, channel limit :limit::bigint
