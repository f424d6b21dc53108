-- Settles the end of these runs in rounds, until nothing more follows.
--
-- The outermost parents are locked first, in order of id: one transaction at a time settles a workflow with everything
-- nested in it. The two settings are needed because the planner cannot know how few rows are meant: it may plan while
-- the tables are small, and later read them whole. Planning each time would take longer than the work.
create or replace function foliot.settle_endings(ended foliot.ending[], at timestamptz) returns void language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
    counted foliot.ending[];
begin
    perform set_config('foliot.is_settling', 'yes', true);
    perform from foliot.parents
    where id = any (array(select p.root_id from foliot.parents p where p.id in (select parent_id from unnest(ended))))
    order by id for update;
    while ended is not null loop
        counted := ended;
        while exists (select from unnest(ended) as e where e.has_dependents) loop
            ended := foliot.settle_dependents(ended, at);
            counted := counted || ended;
            if ended is not null then
                perform foliot.note_endings(ended);
            end if;
        end loop;
        ended := foliot.settle_parents(counted, at);
        if ended is not null then
            perform foliot.note_endings(ended);
        end if;
    end loop;
    perform set_config('foliot.is_settling', '', true);
end
$$;
