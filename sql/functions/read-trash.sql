-- Returns a page of the trash, newest first, as JSON texts separated by commas. The page begins after the bookmark that
-- was deleted at `p_before` and has the id `p_before_id`. It has at most `p_limit` bookmarks and `p_bytes` bytes, but at
-- least one bookmark.
--
-- read-page.sql explains the loop, and why this function must not sort.
create or replace function read_trash(
  p_user_id bigint, p_before timestamptz, p_before_id bigint, p_limit integer, p_bytes integer,
  out bookmarks text, out last_deleted_at timestamptz, out last_id bigint, out has_more boolean
)
language plpgsql stable set enable_sort = off as $$
declare
  v_deleted record;
  v_texts text[] := '{}';
  v_count integer := 0;
  v_bytes bigint := 0;
begin
  has_more := false;
  for v_deleted in
    select t.id, t.deleted_at,
      -- the text of the bookmark without its closing brace, then the time of the deletion
      left(render_bookmark(t.bookmark), -1) || ',"deleted_at":"' || render_time(t.deleted_at) || '"}' as rendered
    from (
      -- Because this query has a limit, it remains a step of its own, and reads each row's JSON once.
      select id, deleted_at, jsonb_populate_record(bookmark_defaults(), bookmark) as bookmark
      from trash
      where user_id = p_user_id and (deleted_at, id) < (p_before, p_before_id)
      order by deleted_at desc, id desc
      limit p_limit + 1
    ) t
  loop
    v_bytes := v_bytes + octet_length(v_deleted.rendered);
    has_more := v_count = p_limit or v_count > 0 and v_bytes > p_bytes;
    exit when has_more;
    v_texts := v_texts || v_deleted.rendered;
    v_count := v_count + 1;
    last_deleted_at := v_deleted.deleted_at;
    last_id := v_deleted.id;
  end loop;
  bookmarks := array_to_string(v_texts, ',');
end
$$;
