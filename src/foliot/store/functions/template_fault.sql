-- Says which placeholder in the payload of a one-off job can't be rendered, or null. model/templates.py has the language;
-- the worker checks the arguments of filters.
create or replace function foliot.template_fault(payload jsonb) returns text language sql immutable parallel safe return (
    select 'payload: no placeholder of a one-off job begins '
        || quote_literal(substr(left_over, position('{{' in left_over), 60))
        || '; to keep the braces as they are, set templates to false'
    from (
        select regexp_replace(
            leaf #>> '{}',
            '\{\{\s*(?:"[^"]*"|''[^'']*''|(?:run_id|attempt|task|queue|namespace|is_backfill)\y'
            || '|(?:scheduled_for|previous_tick|next_tick|timezone|job)\y(?=[^{}]*\|\s*default\y)'
            || '|signal\y(?:\.[\w-]+|\[[^]]*\])*|payload(?:\.[\w-]+|\[[^]]*\])+)'
            || '(?:\s*\|\s*(?:(?:date|time|iso|epoch|json|quote)\y'
            || '|(?:format|add|in_zone|default)\y\s*\(?\s*(?:"[^"]*"|''[^'']*'')\s*\)?))*\s*\}\}',
            '', 'g'
        ) as left_over
        from jsonb_path_query(payload, 'strict $.**') as leaf
        where jsonb_typeof(leaf) = 'string' and leaf #>> '{}' like '%{{%'
    ) as texts
    where left_over like '%{{%' limit 1
);
