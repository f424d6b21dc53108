-- Makes a UUID of version 7: ids sort by the time at which they were made.
create or replace function foliot.new_id(at timestamptz) returns uuid language sql volatile parallel safe
return encode(set_bit(set_bit(overlay(
    uuid_send(gen_random_uuid())
    placing substring(int8send(floor(extract(epoch from at) * 1000)::bigint) from 3) from 1 for 6
), 52, 1), 53, 1), 'hex')::uuid;
