-- Returns a page of the trash, newest first, as JSON texts separated by commas. The page begins after the bookmark that
-- was deleted at `p_before` and has the id `p_before_id`. It has at most `p_limit` bookmarks and about `p_bytes` bytes,
-- but at least one bookmark.
create or replace function read_trash(
  p_user_id bigint, p_before timestamptz, p_before_id bigint, p_limit integer, p_bytes integer,
  out bookmarks text, out last_deleted_at timestamptz, out last_id bigint, out has_more boolean
)
language plpgsql stable set enable_sort = off as $$
declare
  v_count integer := 0;
  v_bytes bigint := 0;
  v_row record;
  v_texts text[] := '{}';
begin
  -- This query reads one row more than the page may have, to learn whether more bookmarks follow.
  for v_row in
    select id, deleted_at,
      '{"id":' || id
        || ',"url":' || to_json(url)
        || ',"title":' || to_json(title)
        || ',"comment":' || to_json(comment)
        || ',"tags":' || tags
        || ',"created_at":"' || render_time(created_at)
        || '","updated_at":"' || render_time(updated_at)
        || '","deleted_at":"' || render_time(deleted_at) || '"}' as rendered
    from trash
    where user_id = p_user_id and (deleted_at, id) < (p_before, p_before_id)
    order by deleted_at desc, id desc
    limit p_limit + 1
  loop
    has_more := v_count = p_limit or v_count > 0 and v_bytes + octet_length(v_row.rendered) > p_bytes;
    exit when has_more;
    v_count := v_count + 1;
    v_bytes := v_bytes + octet_length(v_row.rendered);
    v_texts := v_texts || v_row.rendered;
    last_deleted_at := v_row.deleted_at;
    last_id := v_row.id;
  end loop;
  has_more := coalesce(has_more, false);
  bookmarks := array_to_string(v_texts, ',');
end
$$;
