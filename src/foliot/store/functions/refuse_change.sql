-- Refuses every update and delete on the audit log. The pruner drops whole days.
create or replace function foliot.refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'foliot.audit is append-only' using errcode = 'insufficient_privilege';
end $$;

create or replace trigger audit_is_append_only before update or delete on foliot.audit
for each row execute function foliot.refuse_change();
