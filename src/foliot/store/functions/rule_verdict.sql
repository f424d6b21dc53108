-- Says what a rule decides at these counts of upstreams: 'run', 'skip', or null while it is open.
--
-- A cancelled upstream counts as failed.
create or replace function foliot.rule_verdict(
    rule text, unmet bigint, succeeded bigint, failed bigint, skipped bigint
) returns text
language sql immutable parallel safe
return case rule
    when 'all_success' then case when failed + skipped > 0 then 'skip' when unmet = 0 then 'run' end
    when 'all_failed' then case when succeeded + skipped > 0 then 'skip' when unmet = 0 then 'run' end
    when 'one_success' then case when succeeded > 0 then 'run' when unmet = 0 then 'skip' end
    when 'one_failed' then case when failed > 0 then 'run' when unmet = 0 then 'skip' end
    when 'none_failed' then case when failed > 0 then 'skip' when unmet = 0 then 'run' end
    when 'none_failed_min_one_success'
        then case when failed > 0 then 'skip' when unmet = 0 then case when succeeded > 0 then 'run' else 'skip' end end
    else case when unmet = 0 then 'run' end
end;
