-- Returns the bookmarks and tags that were changed or deleted after a revision, in the order of their revisions.
-- Returns at most `p_limit` bookmarks and tags, and about 1 MiB of JSON text, but at least one bookmark or tag.
-- Bookmarks with ids above `p_bookmark_id` are counted in `count` but not returned (see `read_changes`).
create or replace function read_changed(
  p_user_id bigint, p_change bigint, p_bookmark_id bigint, p_limit integer,
  out bookmarks text, out deleted text, out tags text, out deleted_tags text,
  out count integer, out last_number bigint, out has_more boolean
)
language plpgsql stable set enable_sort = off as $$
begin
  with picked as materialized (
    select c.number, c.kind, c.object_id
    from changes c
    where c.user_id = p_user_id and c.number > p_change
    order by c.number
    limit p_limit
  ), stored as materialized (
    select picked.number, picked.kind, picked.object_id,
      sum(bookmark_bytes(row(b.*)::bookmarks))
        over (order by number rows between unbounded preceding and 1 preceding) as bytes_before
    from picked
    left join bookmarks b on b.user_id = p_user_id and b.id = picked.object_id
      and picked.kind = 'bookmark' and picked.object_id <= p_bookmark_id
  ), rendered as materialized (
    select stored.number, stored.kind, stored.object_id,
      case
        when stored.kind = 'tag' then
          (select render_tag(t.id, t.name) from tags t where t.user_id = p_user_id and t.id = stored.object_id)
        when stored.object_id <= p_bookmark_id then
          (
            select render_bookmark(row(b.*)::bookmarks)
            from bookmarks b
            where b.user_id = p_user_id and b.id = stored.object_id
          )
      end as object
    from stored
    -- The JSON text of a bookmark is at least as long as `bookmark_bytes`. So if the `bookmark_bytes` of the rows
    -- before a bookmark fill the page, their texts do so too, and the bookmark need not be rendered.
    where coalesce(bytes_before, 0) < 1048576
  ), sized as (
    select number, kind, object_id, object,
      sum(octet_length(object))
        over (order by number rows between unbounded preceding and 1 preceding) as bytes_before
    from rendered
  )
  -- If `object` is null, the tag or bookmark was deleted, or the bookmark's id is above `p_bookmark_id`.
  select
    coalesce(string_agg(object, ',' order by number) filter (where kind = 'bookmark'), ''),
    coalesce(string_agg(object_id::text, ',' order by number) filter (
      where kind = 'bookmark' and object is null and object_id <= p_bookmark_id
    ), ''),
    coalesce(string_agg(object, ',' order by number) filter (where kind = 'tag'), ''),
    coalesce(string_agg(object_id::text, ',' order by number) filter (where kind = 'tag' and object is null), ''),
    count(*), max(number)
  into bookmarks, deleted, tags, deleted_tags, count, last_number
  from sized
  where coalesce(bytes_before, 0) < 1048576;
  -- This statement does not use `exists`, because `exists` would drop the order (see the end of read-page.sql).
  has_more := (
    select c.number from changes c where c.user_id = p_user_id and c.number > last_number order by c.number limit 1
  ) is not null;
end
$$;
