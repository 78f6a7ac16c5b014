-- Returns the bookmarks and tags that were changed or deleted after a revision, in the order of their revisions.
-- Returns at most `p_limit` bookmarks and tags, and 1 MiB of JSON text, but at least one bookmark or tag.
-- Bookmarks with ids above `p_bookmark_id` are counted in `count` but not returned (see `read_changes`).
--
-- read-page.sql explains the loop. The query looks up each bookmark and each tag by its whole key in a subquery.
create or replace function read_changed(
  p_user_id bigint, p_change bigint, p_bookmark_id bigint, p_limit integer,
  out bookmarks text, out deleted text, out tags text, out deleted_tags text,
  out count integer, out last_number bigint, out has_more boolean
)
language plpgsql stable set enable_sort = off as $$
declare
  v_changed record;
  v_bytes bigint := 0;
  v_bookmarks text[] := '{}';
  v_deleted bigint[] := '{}';
  v_tags text[] := '{}';
  v_deleted_tags bigint[] := '{}';
begin
  count := 0;
  has_more := false;
  for v_changed in
    select c.number, c.kind, c.object_id,
      -- null if the bookmark or tag was deleted, or if the bookmark's id is above `p_bookmark_id`
      case
        when c.kind = 'tag' then
          (select render_tag(t.id, t.name) from tags t where t.user_id = p_user_id and t.id = c.object_id)
        when c.object_id <= p_bookmark_id then
          (
            select render_bookmark(row(b.*)::bookmarks)
            from bookmarks b
            where b.user_id = p_user_id and b.id = c.object_id
          )
      end as object
    from changes c
    where c.user_id = p_user_id and c.number > p_change
    order by c.number
    limit p_limit + 1
  loop
    v_bytes := v_bytes + coalesce(octet_length(v_changed.object), 0);
    has_more := count = p_limit or count > 0 and v_bytes > limit_of('page_bytes');
    exit when has_more;
    if v_changed.kind = 'tag' and v_changed.object is null then
      v_deleted_tags := v_deleted_tags || v_changed.object_id;
    elsif v_changed.kind = 'tag' then
      v_tags := v_tags || v_changed.object;
    elsif v_changed.object is not null then
      v_bookmarks := v_bookmarks || v_changed.object;
    elsif v_changed.object_id <= p_bookmark_id then
      v_deleted := v_deleted || v_changed.object_id;
    end if;
    count := count + 1;
    last_number := v_changed.number;
  end loop;
  bookmarks := array_to_string(v_bookmarks, ',');
  deleted := array_to_string(v_deleted, ',');
  tags := array_to_string(v_tags, ',');
  deleted_tags := array_to_string(v_deleted_tags, ',');
end
$$;
