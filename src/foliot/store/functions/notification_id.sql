-- Makes the id of the run that delivers a notification.
--
-- The id depends only on the arguments, so the notification can be found from the run that ended. model/notification.py
-- makes the same id.
create or replace function foliot.notification_id(run_id uuid, place bigint, at timestamptz) returns uuid
language plpgsql immutable parallel safe as $$
declare
    made bytea := substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3)
        || substring(decode(md5(run_id || '/' || place), 'hex') from 7);
begin
    made := set_byte(made, 6, get_byte(made, 6) & 15 | 112);
    made := set_byte(made, 8, get_byte(made, 8) & 63 | 128);
    return encode(made, 'hex')::uuid;
end
$$;
