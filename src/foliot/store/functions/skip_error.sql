-- Builds the error of a skipped run, which names the step to blame.
create or replace function foliot.skip_error(rule text, blame text, skipped bigint) returns jsonb
language sql immutable parallel safe
return case
    when blame is not null then jsonb_build_object('kind', 'DependencyFailed', 'message',
        'dependency_failed: ' || blame, 'upstream', blame)
    when rule in ('one_failed', 'all_failed')
        then jsonb_build_object('kind', 'RuleUnmet', 'message', 'rule ' || rule || ': too little has failed')
    when skipped > 0 then jsonb_build_object('kind', 'DependencySkipped', 'message', 'what it waits for was skipped')
    else jsonb_build_object('kind', 'RuleUnmet', 'message', 'rule ' || rule || ' can''t be met')
end;
