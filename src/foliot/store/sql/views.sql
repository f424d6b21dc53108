-- Saved views of lists: private to one owner, or shared in the namespace, whose owner is ''.

-- name: list_views(namespace, owner)
-- The shared views and those of one owner, by name; at most a few hundred.
select page, name, search, owner = '' as is_shared, updated_at, updated_by from foliot.views
where namespace = :namespace::text and owner in ('', :owner::text) order by page, name, owner

-- name: put_view(namespace, owner, page, name, search, by, most, now)
-- Creates or replaces a view, unless the owner has :most others. Returns it, or nothing.
insert into foliot.views as v (namespace, owner, page, name, search, updated_at, updated_by)
select :namespace::text, :owner::text, :page::text, :name::text, :search::text,
    coalesce(:now::timestamptz, clock_timestamp()), :by::text
where (
    select count(*) from foliot.views
    where namespace = :namespace::text and owner = :owner::text and (page, name) <> (:page::text, :name::text)
) < :most::bigint
on conflict (namespace, owner, page, name) do update
    set search = excluded.search, updated_at = excluded.updated_at, updated_by = excluded.updated_by
returning page, name, search, owner = '' as is_shared, updated_at, updated_by

-- name: delete_view(namespace, owner, page, name)
-- Deleting it again changes nothing.
delete from foliot.views
where namespace = :namespace::text and owner = :owner::text and page = :page::text and name = :name::text
